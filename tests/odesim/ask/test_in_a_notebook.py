"""In a kernel of Jupyter: a long call shows its progress below its cell, and an interrupt leaves what there is."""

import re
import threading

import pytest

pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra dev)")
LONG = 'odesim.integrate("liao", m=25, m_star=5, d=1e6, until=400, rtol=1e-11, seed={seed})'
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def told(client, code, hook=lambda message: None):
    """All messages that a cell sends, and its reply."""
    messages = []

    def take(message):
        messages.append(message)
        hook(message)

    reply = client.execute_interactive(code, timeout=120, store_history=False, output_hook=take)
    return messages, reply["content"]


def bars(messages):
    return [
        m["content"]["data"]["text/html"] for m in messages if m["msg_type"] in ("display_data", "update_display_data")
    ]


def test_progress_is_shown_and_goes_and_an_interrupt_keeps_the_run(kernel):
    manager, client = kernel
    _, reply = told(
        client, "import odesim\nfrom odesim.ask import progress\nprogress.DELAY = 0.2\nprogress.CELL_EVERY = 0.1"
    )
    assert reply["status"] == "ok", reply
    messages, reply = told(client, f"run = {LONG.format(seed=1)}")
    assert reply["status"] == "ok", reply
    shown = bars(messages)
    assert "integrating liao" in shown[0] and "<progress" in shown[0] and shown[-1] == ""
    fractions = [float(found[1]) for bar in shown if (found := re.search(r'value="([\d.]+)"', bar))]
    assert len(fractions) >= 3 and fractions == sorted(fractions) and fractions[-1] > fractions[0]
    assert {m["msg_type"] for m in messages if m["msg_type"].endswith("display_data")} == {
        "display_data", "update_display_data",
    }  # fmt: skip

    once = threading.Event()

    def interrupt(message):
        data = message["content"].get("data", {}).get("text/html", "")
        if re.search(r'value="0\.[0-9]*[1-9]', data) and not once.is_set():
            once.set()
            manager.interrupt_kernel()

    messages, reply = told(client, f"run = {LONG.format(seed=2)}", interrupt)
    assert once.is_set() and reply["status"] == "error" and reply["ename"] == "InterruptedRun"
    assert "the run up to there is kept" in reply["evalue"] and bars(messages)[-1] == ""
    messages, reply = told(
        client, "import sys\npart = sys.last_value.result\nprint(part.outcome.kind, 0 < part.time[-1] < 400)"
    )
    assert reply["status"] == "ok", reply
    assert "".join(m["content"]["text"] for m in messages if m["msg_type"] == "stream") == "interrupted True\n"


def test_a_short_call_shows_nothing(kernel):
    messages, reply = told(kernel[1], 'progress.DELAY = 30\nodesim.integrate("liao", m=2, m_star=1, d=50, until=1.0);')
    assert reply["status"] == "ok" and bars(messages) == []
