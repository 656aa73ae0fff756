"""The Autobahn suite's cases against a server, those of compression left out. Argument: the server's URL. Prints 'ok' when
none failed, else a line for each that did."""
import asyncio, os, sys
from kosoku import FailureError, run_fuzzingclient

async def main(url):
    try:
        results = await run_fuzzingclient(url, None, ["12.*", "13.*"], concurrency=4)
    except FailureError as error:
        results = error.results
    assert len(results) == 301, f"{len(results)} cases instead of 301"
    for case in results:
        if not case.passed:
            print(case.case_id, case.behavior.value, case.behavior_close.value, case.result, case.result_close)
    if all(case.passed for case in results):
        print("ok", flush=True)

asyncio.run(main(sys.argv[1]))
# kosoku's own threads may abort an interpreter that ends in the usual way.
sys.stdout.flush()
os._exit(0)
