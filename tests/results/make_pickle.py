"""Writes data/golden.pickle, what pickle_test.cpp expects: python3 make_pickle.py"""
import pathlib
import pickle

value = {
    "numbers": [0, 255, 256, 65535, 65536, -1, -128, 2**31 - 1, -(2**31), 2**31, 2**39, -(2**31) - 1,
                2**47 - 1, 2**63 - 1, -(2**63)],
    "many": list(range(2500)),
    "text": ["", "ü€𝄞"],
    "nested": {"empty": [], "none": {}, "pairs": [(0, 0), (1, 70000)]},
    "truth": [True, False],
}
with open(pathlib.Path(__file__).parent / "data" / "golden.pickle", "wb") as file:
    pickler = pickle.Pickler(file, protocol=2)
    pickler.fast = True  # no memo
    pickler.dump(value)
