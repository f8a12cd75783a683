"""The interactive page in headless Chromium: a driver hovers, clicks, chooses, and reads what is said and drawn."""

import shutil

import numpy as np
import pytest

import odesim

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="neither Chromium nor its driver is installed"),
]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_window_size(1400, 1000)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    common = {"m": 3, "m_star": 2, "d": 100}
    flow = odesim.integrate("liao", **common, seed=1, until=4.0, save_points=21)
    sgd = odesim.simulate(
        "liao", method="compressed", step_size=0.01, batch=16, seeds=3, until=4.0, save_points=21, seed=1, **common
    )
    grid = odesim.sweep("liao", {"d": [50, 100], "seed": [0, 1]}, m=2, m_star=1, until=2.0, save_points=11)
    return {
        "flow": flow,
        "run": odesim.explore(flow, folder / "run.html"),
        "both": odesim.explore(odesim.compare(flow, sgd), folder / "both.html"),
        "sweep": odesim.explore(grid, folder / "sweep.html"),
        "grid": grid,
    }


def opened(browser, path):
    """Open a page; nothing but itself is asked for, and nothing fails in it."""
    browser.get(f"file://{path}")
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
    waited(browser, lambda driver: driver.execute_script("return document.body.dataset.ready") == "true")
    asked = [
        entry["message"] for entry in browser.get_log("performance") if 'Network.requestWillBeSent"' in entry["message"]
    ]
    assert asked and all('"url":"file://' in message or '"url":"data:' in message for message in asked)


def drawn(browser, plot="curves"):
    """The lines that are drawn: their panel, first two values and hover text."""
    return browser.execute_script(
        "return document.getElementById(arguments[0]).data.filter(t => t.x.length > 2 || t.mode === 'markers')"
        ".map(t => "
        "({panel: t.yaxis, says: t.hovertemplate, y: Array.from(t.y), x: Array.from(t.x), "
        "color: t.line && t.line.color}))",
        plot,
    )


def waited(browser, condition):
    """The value of a condition as soon as it is true."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 5).until(condition)


def typed(browser, field, words):
    browser.execute_script(
        "var f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('change', {bubbles: true}));", field, words,
    )  # fmt: skip


def ticked(browser, name):
    browser.find_element("css selector", f'#controls input[value="{name}"]').click()


def test_entries_variables_and_axes_are_chosen(browser, pages):
    opened(browser, pages["run"])
    first = drawn(browser)
    assert sum("gamma2[" in line["says"] for line in first) == 6
    typed(browser, "places-teacher", "2")
    typed(browser, "places-expert", "1,3")
    chosen = [line for line in drawn(browser) if "gamma2[" in line["says"]]
    assert [line["y"][-1] for line in chosen] == pytest.approx(pages["flow"]["gamma2"][-1, [0, 2], 1], rel=1e-6)
    assert "expert 3, teacher 2" in chosen[1]["says"]
    assert len({line["color"] for line in chosen}) == 1
    typed(browser, "places-expert", "1-9")
    assert browser.find_element("id", "places-expert").get_attribute("aria-invalid") == "true"
    ticked(browser, "loss")
    assert any("<b>loss</b>" in line["says"] for line in drawn(browser))
    browser.find_element("id", "log-y").click()
    browser.find_element("id", "log-x").click()
    axes = browser.execute_script(
        "var l = document.getElementById('curves').layout; return [l.xaxis.type, l.yaxis.type, l.xaxis.title.text]"
    )
    assert axes == ["log", "log", "time t"]
    assert min(min(line["y"]) for line in drawn(browser) if "gamma2[" in line["says"]) >= 0
    status = browser.find_element("id", "status").text
    assert "show their size" in status and status.endswith("advances it by the step size.")


def test_hovering_says_name_and_value(browser, pages):
    opened(browser, pages["run"])
    for name in ("gamma1", "min_I2"):
        ticked(browser, name)
    typed(browser, "places-teacher", "1")
    typed(browser, "places-expert", "2")
    (line,) = [line for line in drawn(browser) if "gamma2[" in line["says"]]
    at = browser.execute_script(
        "var p = document.getElementById('curves'), f = p._fullLayout, b = p.getBoundingClientRect();"
        "return [b.left + f.xaxis._offset + f.xaxis.l2p(arguments[0]), "
        "b.top + f.yaxis._offset + f.yaxis.l2p(arguments[1])]",
        line["x"][10], line["y"][10],
    )  # fmt: skip
    actions = webdriver.ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(int(at[0]), int(at[1]))
    actions.perform()
    (label,) = waited(browser, lambda driver: driver.find_elements("css selector", "#curves .hoverlayer .hovertext"))
    said = label.text
    assert "gamma2[expert 2, teacher 1]" in said and "at time" in said
    value = float(said.replace("\u2212", "-").split("= ")[1].split("\n")[0].split("at")[0])
    assert np.isclose(value, pages["flow"]["gamma2"][:, 1, 0], rtol=1e-5).any()


def test_flow_and_replicas_are_drawn_together_and_taken_apart(browser, pages):
    opened(browser, pages["both"])
    typed(browser, "places-expert", "1")
    typed(browser, "places-teacher", "1")
    assert sum("gamma2[" in line["says"] for line in drawn(browser)) == 1 + 3
    typed(browser, "places-replica", "2")
    assert sum("gamma2[" in line["says"] for line in drawn(browser)) == 1 + 1
    browser.find_element("css selector", '#runs input[value="0"]').click()
    (left,) = [line for line in drawn(browser) if "gamma2[" in line["says"]]
    assert "replica 2, expert 1, teacher 1" in left["says"] and "compressed SGD" in left["says"]


def test_a_click_on_a_point_shows_its_run(browser, pages):
    opened(browser, pages["sweep"])
    points = browser.execute_script(
        "var p = document.getElementById('grid'), f = p._fullLayout, b = p.getBoundingClientRect();"
        "return p.data.flatMap(t => t.x.map((x, k) => ({run: t.customdata[k], at: [b.left + f.xaxis._offset + "
        "f.xaxis.d2p(x), b.top + f.yaxis._offset + f.yaxis.d2p(t.y[k])]})))"
    )
    assert sorted(point["run"] for point in points) == [0, 1, 2, 3]
    (third,) = [point["at"] for point in points if point["run"] == 2]
    actions = webdriver.ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(int(third[0]), int(third[1]))
    actions.pause(0.3).click().perform()
    waited(browser, lambda driver: "d = 100, seed = 0" in driver.find_element("id", "numbers").text)
    curve = pages["grid"]["curve_gamma2"].sel(d=100, seed=0, expert=2, teacher=1).values
    shown = [line["y"] for line in drawn(browser) if "gamma2[expert 2, teacher 1]" in line["says"]]
    assert shown == [pytest.approx(curve, rel=1e-6)]


def test_the_page_fits_a_telephone_in_the_dark(browser, pages):
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    try:
        opened(browser, pages["sweep"])
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        ground, ink = browser.execute_script(
            "return [getComputedStyle(document.body).backgroundColor, "
            "document.getElementById('curves').layout.font.color]"
        )
        assert ground == "rgb(20, 23, 26)" and ink == "#e4e7ea"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
