"""The numbered statements of the paper, and the reasons for those without a claim."""

STATEMENTS: dict[str, str] = {
    "Lemma 4.1": "",
    "Lemma 4.2": "",
    "Theorem 4.3": "",
    "Lemma 4.4": "",
    "Theorem 4.5": "",
    "Definition C.1": "defines important experts by p_1, which runs save",
    "Lemma D.1": "",
    "Lemma E.1": "",
    "Lemma E.2": "",
    "Lemma E.3": "",
    "Lemma E.4": "",
    "Lemma E.5": "",
    "Lemma E.6": "",
    "Lemma F.1": "states the full version of Lemma 4.2; see lem-4.2-i, lem-4.2-ii",
    "Lemma H.1": "states the full version of Lemma 4.4; see lem-4.4-i, lem-4.4-iii",
}
