// Writes the Swift test that the inspector's page generates for an actor: `node copied.mjs FILE…`. The files have the responses of
// /inspect/actors/NAME?versions=200&earlier=1, oldest first.
import { readFileSync } from "node:fs"
import { copiedTest } from "../inspector/inspector-copy.js"
import { exact } from "../inspector/inspector-json.js"
import { States } from "../inspector/inspector-state.js"

const looks = process.argv.slice(2).map((file) => exact.parse(readFileSync(file, "utf8")))
const known = new Map()
for (const shown of looks) States.update(shown, known)
process.stdout.write(copiedTest(looks.at(-1), known))
