// services.mjs PORT NAME SEED ROUNDS ROOMS: a client of the services for `scripts/stress consistency --services`. It reads commands from its
// input: `found`, `play`, `finish N`, `report`; ROOMS are the ids of its rooms, separated by commas. It prints `joined`, `round`, `played`,
// and reports as one line of JSON (`ServicesClientReport` in Tools/Consistency).
import { createInterface } from "node:readline"
import { services } from "../../dist/trebuchet-services.js"
import { WebSocket } from "../sockets.mjs"

const [port, name, seed, rounds, roomIDs] = process.argv.slice(2)
const say = (line) => process.stdout.write(line + "\n")

/** mulberry32: returns whole numbers below a limit. */
function randomOf(seed) {
    let state = Number(BigInt(seed) & 0xffffffffn)
    return (limit) => {
        state = (state + 0x6d2b79f5) | 0
        let t = Math.imul(state ^ (state >>> 15), 1 | state)
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
        return ((t ^ (t >>> 14)) >>> 0) % limit
    }
}

const random = randomOf(seed)
const report = {
    name, rooms: {}, notes: [], diary: [], writers: [], isWaiting: false, ownNotes: [], ownPages: [], tags: [], writes: 0,
    acknowledged: 0, failures: [], attempts: 0, spied: [],
}
const app = services(`ws://127.0.0.1:${port}`, { WebSocket, initialDelay: 5, maximumDelay: 100, pending: null })
const rooms = new Map()
const notes = app.collection("notes")
const diary = app.collection("diary")
const shownNotes = notes.query({ limit: 10_000 })
const shownDiary = diary.query({ limit: 10_000 })

/** Resolves when a value of the store satisfies the condition. */
function until(store, condition) {
    return new Promise((resolve) => {
        let end
        const look = () => {
            if (!condition(store.getSnapshot())) return
            end?.()
            resolve()
        }
        end = store.subscribe(look)
        look()
    })
}

async function enter() {
    await app.auth.signInAsGuest()
    for (const id of roomIDs.split(",")) {
        const own = (report.rooms[id] = { peers: [], seen: [], events: [], acknowledged: [], unknown: [], refused: [] })
        const room = app.room("office-" + id, { name, room: id, mood: "" })
        rooms.set(id, room)
        room.subscribe("talk", ({ payload }) => own.events.push(payload))
        const seen = new Set()
        room.peers.subscribe(() => {
            own.peers = room.peers.getSnapshot().map(({ data }) => data)
            for (const peer of own.peers) seen.add(`${peer.name}@${peer.room}`)
            own.seen = [...seen]
        })
        await until(room.status, ({ phase }) => phase === "joined")
    }
    const writers = new Set()
    shownDiary.subscribe(() => {
        for (const page of shownDiary.getSnapshot() ?? []) writers.add(page.owner)
        report.writers = [...writers]
    })
    shownNotes.subscribe(() => {})
    await until(shownNotes.status, ({ phase }) => phase === "live")
    await until(shownDiary.status, ({ phase }) => phase === "live")
}

const note = (id, owner) => ({ id, owner, text: "", count: 0, tags: [] })
const takeAny = (list) => list.splice(random(list.length), 1)[0]
const chooseAny = (list) => list[random(list.length)]

/** Makes one write whose effect shows whether it was applied exactly once. */
function write() {
    const label = `${name}-${++report.writes}`
    const { ownNotes: owned, ownPages: pages, tags } = report
    const kind = random(9)
    if (kind === 0 && owned.length) return notes.delete(takeAny(owned).id)
    if (kind <= 2 && owned.length) {
        const changed = chooseAny(owned)
        changed.count++
        return notes.update(changed.id, { count: changed.count })
    }
    if (kind === 3) {
        report.text = label
        return notes.update("shared", { text: label })
    }
    if (kind === 4 && tags.length) return notes.unlink("shared", "tags", takeAny(tags))
    if (kind === 4 || kind === 5) {
        tags.push(label)
        return notes.link("shared", "tags", label)
    }
    if (kind === 6) {
        pages.push(note(label, name))
        return diary.create(note(label, name))
    }
    if (kind === 7 && pages.length) {
        const changed = chooseAny(pages)
        changed.count++
        return diary.update(changed.id, { count: changed.count })
    }
    owned.push(note(label, name))
    return notes.create(note(label, name))
}

async function publish(number, id) {
    const label = `${name}.${id}.${number}`
    const own = report.rooms[id]
    try {
        await rooms.get(id).publish("talk", label)
        own.acknowledged.push(label)
    } catch ({ code }) {
        own[code === "unknownOutcome" || code === "timeout" ? "unknown" : "refused"].push(label)
    }
}

async function play() {
    for (let round = 1; round <= rounds; round++) {
        const writes = [write(), write(), write()]
        for (const [id, room] of rooms) {
            room.set({ name, room: id, mood: String(round) })
            await publish(round, id)
        }
        for (const each of writes) {
            try {
                await each
                report.acknowledged++
            } catch (error) {
                report.failures.push(String(error))
            }
        }
        say("round")
    }
    say("played")
}

async function perform([command, number]) {
    if (command === "play") return void play()
    if (command === "found") await notes.create(note("shared", "all"))
    if (command === "finish") {
        for (const [id, room] of rooms) {
            room.set({ name, room: id, mood: number })
            await publish(Number(number), id)
        }
    }
    const isWaiting = [shownNotes, shownDiary].some((query) => query.status.getSnapshot().pending > 0)
    say("report " + JSON.stringify({ ...report, notes: shownNotes.getSnapshot(), diary: shownDiary.getSnapshot(), isWaiting }))
}

await enter()
say("joined")
const input = createInterface({ input: process.stdin })
// The input ends with the judge.
input.on("close", () => process.exit(0))
let previous = Promise.resolve()
input.on("line", (line) => (previous = previous.then(() => perform(line.split(" ")))))
