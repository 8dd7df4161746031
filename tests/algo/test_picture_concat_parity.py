"""Methods on pictures with one encoder of state and goal side by side, as OGBench's agents have (fusion=concat), against JAX:
test_picture_parity.py with convolutions over six channels. HIQL's value keeps an encoder of the state beside its goal
representation, which sees both."""
import test_picture_parity as pictures

pictures.CONCAT = True
import test_bc_parity  # noqa: E402
import test_hiql_parity  # noqa: E402
import test_iql_parity  # noqa: E402

METHODS = [pictures.on_pictures(test_bc_parity.METHOD, kinds=test_bc_parity.METHOD.kinds[:1], goals=({}, {"rep": (1, 3)})),
           pictures.on_pictures(test_iql_parity.METHOD, kinds=({"policy": "rejection"},), goals=({},)),
           pictures.on_pictures(test_hiql_parity.METHOD, kinds=test_hiql_parity.METHOD.kinds[:1], goals=({},)),
           pictures.on_pictures(pictures.DCRL)]


if __name__ == "__main__":
    pictures.main(METHODS)
