"""`scripts/stress attacks`: whether one client, host or network can slow the others."""
import argparse, datetime, os, sys
import accounts, collection, http_and_calls, queries, room  # Register the attacks.
from attack import ATTACKS
from trial import run

def names(text): return [each.strip().upper() for each in text.split(",") if each.strip()]

def main():
    parser = argparse.ArgumentParser(prog="scripts/stress attacks", usage="scripts/stress attacks --help", add_help=False)
    parser.add_argument("--only", type=names, default=[])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--server", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.list:
        for attack in ATTACKS:
            print(f"{attack.name:14}{attack.title}")
        return 0
    def has(name, attack): return attack.name == name or attack.name.startswith(f"{name}-")
    for name in options.only:
        if not any(has(name, attack) for attack in ATTACKS):
            parser.error(f"unknown attack '{name}'; --list names all")
    chosen = [attack for attack in ATTACKS if not options.only or any(has(name, attack) for name in options.only)]
    missed = [attack.name for attack in chosen if not show(attack, options)]
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} attacks within the bounds{'; missed: ' if missed else ''}{', '.join(missed)}")
    return 1 if missed else 0

def show(attack, options):
    """Runs an attack, prints its part of the table, and returns whether it is within the bounds."""
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{attack.name}: {attack.title}   ({datetime.datetime.now():%H:%M:%S}, load {load})", flush=True)
    try:
        if not attack.probes:
            text, is_good = attack.function(options.server)
            print(f"    {text}  {mark(is_good)}", flush=True)
            return is_good
        for attempt in range(options.repeats):
            outcome = run(attack, options.server, options.seconds, options.keep)
            if outcome.is_good or not outcome.is_disturbed:
                break
            print("    disturbed by other programs", flush=True)
    except Exception as error:
        print(f"    FAILED: {error}", flush=True)
        return False
    row("p50 / p99 / max in ms", "before", "under attack", "failed")
    for name, before, during, failed, count, is_good in outcome.rows:
        row(name, milliseconds(before), milliseconds(during), f"{failed} of {count}  {mark(is_good)}")
    for name, value in outcome.facts.items():
        if isinstance(value, tuple):
            row(name, *map(milliseconds, value), "")
        else:
            print(f"    {name}: {value}", flush=True)
    return outcome.is_good

def mark(is_good): return "ok" if is_good else "MISSED"

def row(name, before, during, rest): print(f"    {name:30}{before:22}{during:22}{rest}")

def milliseconds(values): return " / ".join(f"{each * 1000:.{1 if each < 0.1 else 0}f}" for each in values)

sys.exit(main())
