"""The Autobahn suite's cases against a client, those of compression left out: serves them, prints its port, and when the client
has asked for its report 'ok', or a line for each case that failed."""
import asyncio, os, sys
from kosoku import FailureError, run_fuzzingserver

async def main():
    async with run_fuzzingserver(None, ["12.*", "13.*"], host="127.0.0.1", port=0) as server:
        print(server.port, flush=True)
        try:
            results = await server.get_result()
        except FailureError as error:
            results = error.results
    assert len(results) == 301, f"{len(results)} cases instead of 301"
    for case in results:
        if not case.passed:
            print(case.case_id, case.behavior.value, case.behavior_close.value, case.result, case.result_close)
    if all(case.passed for case in results):
        print("ok", flush=True)

asyncio.run(main())
# kosoku's own threads may abort an interpreter that ends in the usual way.
sys.stdout.flush()
os._exit(0)
