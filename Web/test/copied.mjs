// Writes the Swift test that the inspector's page makes of an actor: `node copied.mjs FILE…`, with what is at
// /inspect/actors/NAME?versions=200&earlier=1 each time that it looks, the last time last.
import { readFileSync } from "node:fs"
import { recordedStates, swiftTest } from "../inspector/inspector-copy.js"
import { States } from "../inspector/inspector-state.js"

const looks = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")))
const known = new Map()
for (const shown of looks) States.take(shown, known)
const { name, type, calls, recorded } = looks.at(-1)
process.stdout.write(
    swiftTest({ name, type, calls: calls.toReversed(), versions: recorded.versions, states: recordedStates(looks.at(-1), known) }))
