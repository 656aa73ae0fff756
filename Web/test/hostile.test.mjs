// A server that sends arbitrary messages: the client throws nothing, and works with the next connection.
import assert from "node:assert/strict"
import { test } from "node:test"
import { actorType, date, struct } from "../dist/trebuchet.js"
import { settle, FakeEnvironment } from "./fakes.mjs"

const Board = actorType({
    name: "Board",
    methods: { f: { target: "f()", result: struct({ at: date }), errors: { E: date } } },
    states: { state: { target: "observeState", value: struct({ at: date }) } },
    events: { moves: { target: "observeMoves", value: date } },
})

const kinds = ["hello", "response", "streamStart", "streamData", "streamEnd", "streamError", "error", "goAway", "invocation", "constructor", 7, null]
const names = [
    "callID", "streamID", "session", "limits", "result", "error", "code", "type", "data", "patch", "base", "sequenceNumber", "epoch", "reason",
    "message", "errorMessage", "retryAfterMilliseconds", "reconnectAfterMilliseconds", "__proto__", "callsPerConnection", "messageSize",
]

test("messages of a hostile server", { timeout: 60_000 }, async () => {
    const told = []
    const before = console.error
    console.error = (error) => told.push(error)
    const uncaught = []
    const catching = (error) => uncaught.push(error)
    process.on("uncaughtException", catching)
    process.on("unhandledRejection", catching)
    try {
        let seed = 11
        const random = (limit) => (seed = (seed * 48271) % 2147483647) % limit
        const value = (depth = 0) => {
            const ids = ["1", "2", "3", "4", "s1", "s2", "e1", "unauthenticated", "rateLimited", "serverDraining", "overflow", ""]
            switch (random(depth > 3 ? 6 : 9)) {
                case 0: return null
                case 1: return random(5)
                case 2: return -1e308 * random(3)
                case 3: return random(2) === 0
                case 4: case 5: return ids[random(ids.length)]
                case 6: return Array.from({ length: random(4) }, () => value(depth + 1))
                case 7: return [{ op: ["add", "remove", "move", "copy"][random(4)], path: ["", "/a", "/__proto__/x", "/-", "x"][random(5)], from: "", value: value(depth + 1) }]
                default: return Object.fromEntries(Array.from({ length: random(5) }, () => [names[random(names.length)], value(depth + 1)]))
            }
        }
        for (let round = 0; round < 12; round++) {
            const fake = new FakeEnvironment()
            fake.chance = 0
            const client = await fake.live({ token: random(2) ? () => "t" : undefined, timeout: 1000 })
            const board = client.actor(Board, "b")
            const seen = []
            board.state.subscribe(() => board.state.getSnapshot())
            board.state.at("/at").subscribe(() => {})
            board.moves.subscribe((event) => seen.push(event), () => {})
            const calls = Array.from({ length: 5 }, () => board.f().result())
            for (let count = 0; count < 300; count++) {
                const payload = random(10) ? Object.fromEntries(Array.from({ length: 1 + random(7) }, () => [names[random(names.length)], value()])) : value()
                fake.socket.receiveText(JSON.stringify({ type: kinds[random(kinds.length)], payload }))
                if (fake.socket.wasClosed || client.status.getSnapshot().phase !== "live") {
                    await fake.pass(60_000)
                    if (fake.socket.readyState === 0) fake.socket.greet()
                }
            }
            await fake.pass(2000)
            // Each call ends.
            for (const result of await Promise.all(calls)) assert.equal(typeof result.ok, "boolean")
            client.reconnect()
            await settle()
            fake.socket.greet()
            const asked = fake.socket.sent.find(({ payload }) => payload.targetIdentifier === "observeState")
            fake.socket.receive("streamStart", { streamID: "z", callID: asked.payload.callID, epoch: "z" })
            fake.socket.receive("streamData", { streamID: "z", sequenceNumber: 1, data: { at: "2026-01-01T00:00:00.000Z" } })
            assert.deepEqual(board.state.getSnapshot(), { at: new Date("2026-01-01T00:00:00.000Z") })
            assert.equal(client.status.getSnapshot().phase, "live")
            client.close()
            assert.equal(fake.timers.size, 0)
        }
        await new Promise((resolve) => setImmediate(resolve))
        assert.deepEqual(uncaught, [])
        assert.equal({}.x, undefined)
        // Errors of codecs only, for a value that is not a date.
        for (const error of told) assert.ok(error instanceof Error)
    } finally {
        console.error = before
        process.off("uncaughtException", catching)
        process.off("unhandledRejection", catching)
    }
})
