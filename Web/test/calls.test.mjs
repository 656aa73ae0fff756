import assert from "node:assert/strict"
import { test } from "node:test"
import { actorType, array, data, date, struct, TrebuchetError } from "../dist/trebuchet.js"
import { exact } from "../dist/trebuchet-exact.js"
import { codeOf, settle, World } from "./fakes.mjs"

const invocations = (socket) => socket.take().filter(({ type }) => type === "invocation" || type === "repeat")

test("a call waits for the connection, and is answered", async () => {
    const world = new World()
    const client = world.connect()
    const call = client.actor("todos").call("addTodo(title:)", ["Milk"])
    await settle()
    world.socket.open()
    // Its session and limits come with the answer to hello.
    assert.deepEqual(invocations(world.socket), [])
    world.socket.receive("hello", { session: "s", limits: {} })
    assert.deepEqual(invocations(world.socket), [
        { type: "invocation", payload: { callID: "1", actorID: "todos", targetIdentifier: "addTodo(title:)", arguments: ["Milk"] } },
    ])
    world.socket.receive("response", { callID: "1", result: { id: 1 } })
    assert.deepEqual(await call, { id: 1 })
    const nothing = client.actor("todos").call("clear()")
    world.socket.receive("response", { callID: "2" })
    assert.equal(await nothing, undefined)
})

test("arguments are those of the moment of the call", async () => {
    const world = new World()
    const client = world.connect()
    const list = [1]
    client.actor("a").call("f(_:)", [list])
    list.push(2)
    await settle()
    world.socket.greet()
    assert.deepEqual(world.socket.sent[1].payload.arguments, [[1]])
})

test("what cannot be written is refused at once", async () => {
    const world = new World()
    const client = await world.live()
    const loop = {}
    loop.loop = loop
    assert.equal(await codeOf(client.actor("a").call("f(_:)", [loop])), "invalidArguments")
    assert.equal(await codeOf(client.actor("a").call("f(_:)", [1n << 62n])), "invalidArguments")
    for (const args of ["Milk", { title: "Milk" }, null]) {
        const refusal = { code: "invalidArguments", message: "f(_:): the arguments are not an array" }
        await assert.rejects(client.actor("a").call("f(_:)", args), refusal)
    }
    assert.deepEqual(invocations(world.socket), [])
    const large = await new World().live({ json: exact })
    large.actor("a").call("f(_:)", [1n << 62n])
})

test("what JSON would change is refused at once, with its place", async () => {
    const world = new World()
    const client = await world.live()
    for (const [value, flaw] of [[NaN, ": NaN"], [{ x: [-Infinity] }, "/x/0: -Infinity"], [() => {}, ": a function"]]) {
        await assert.rejects(client.actor("a").call("f(_:)", [value]), { code: "invalidArguments", message: `f(_:): /0${flaw} cannot be sent as JSON` })
    }
    assert.throws(() => client.actor("a").state().filter({ where: { path: "", op: "eq", value: NaN } }), { code: "invalidArguments" })
    assert.deepEqual(invocations(world.socket), [])
    client.actor("a").call("f(_:)", [{ x: undefined, y: [undefined] }])
    assert.deepEqual(invocations(world.socket)[0].payload.arguments, [{ y: [null] }])
})

test("an error is a value, with what the method threw", async () => {
    const world = new World()
    const client = await world.live()
    const call = client.actor("bank").call("pay()")
    world.socket.receive("response", {
        callID: "1",
        error: { code: "application", message: "m", type: "Bank.Poor", data: { missing: 3 }, retryAfterMilliseconds: 20 },
    })
    await assert.rejects(call, (error) => {
        assert.ok(error instanceof TrebuchetError)
        assert.ok(error instanceof Error)
        const { name, code, message, type, data, retryAfter } = error
        assert.deepEqual({ name, code, message, type, data, retryAfter }, {
            name: "TrebuchetError", code: "application", message: "m", type: "Bank.Poor", data: { missing: 3 }, retryAfter: 20,
        })
        return true
    })
    const result = await call.result()
    assert.equal(result.ok, false)
    assert.equal(result.error.data.missing, 3)
})

const Notes = actorType({
    name: "Notes",
    methods: {
        add: { target: "add(_:at:)", arguments: [undefined, date], result: struct({ at: date }), errors: { Full: struct({ since: date }) }, idempotent: true },
        clear: { target: "clear()" },
        send: { target: "send(_:)", arguments: [array(data)] },
    },
    states: { state: { target: "observeState", value: struct({ at: date }) } },
    events: { moves: { target: "observeMoves", value: date } },
})
const when = "2026-01-01T00:00:00.000Z"

test("a typed actor has methods, with codecs for arguments, results and errors", async () => {
    const world = new World()
    const client = await world.live()
    const notes = client.actor(Notes, "notes")
    const call = notes.add("a", new Date(when), { timeout: 500 })
    const [{ payload }] = invocations(world.socket)
    assert.deepEqual(payload, {
        callID: "1", actorID: "notes", targetIdentifier: "add(_:at:)", arguments: ["a", when], timeoutMilliseconds: 500, session: "session",
    })
    world.socket.receive("response", { callID: "1", result: { at: when } })
    assert.deepEqual(await call, { at: new Date(when) })
    const refused = notes.add("a", null)
    assert.deepEqual(invocations(world.socket)[0].payload.arguments, ["a", null])
    world.socket.receive("response", { callID: "2", error: { code: "application", message: "", type: "Module.Full", data: { since: when } } })
    assert.deepEqual((await refused.result()).error.data, { since: new Date(when) })
    // What is left out is null.
    notes.add("a")
    assert.deepEqual(invocations(world.socket)[0].payload.arguments, ["a", null])
    notes.send([Uint8Array.of(1, 2)], { timeout: 1000 })
    assert.deepEqual(invocations(world.socket)[0].payload.arguments, [["AQI="]])
    const { clear } = notes
    clear()
    assert.deepEqual(invocations(world.socket)[0].payload.arguments, [])
    assert.equal(notes.state, notes.state)
    assert.deepEqual(Object.keys(notes), ["add", "clear", "send", "state", "moves"])
})

test("an answer that cannot be read ends its call alone", async () => {
    const world = new World()
    const client = await world.live()
    const Broken = actorType({ name: "B", methods: { f: { target: "f()", result: data } } })
    const call = client.actor(Broken, "b").f()
    world.socket.receive("response", { callID: "1", result: "no base64 $" })
    assert.equal(await codeOf(call), "internal")
    assert.equal(client.status.getSnapshot().phase, "live")
})

test("a call ends by its time, and is cancelled at the server", async () => {
    const world = new World()
    const client = await world.live()
    const call = client.actor("a").call("f()", [], { timeout: 1000 })
    const ended = codeOf(call)
    assert.equal(invocations(world.socket)[0].payload.timeoutMilliseconds, 1000)
    await world.pass(999)
    assert.deepEqual(world.socket.take(), [])
    await world.pass(1)
    assert.equal(await ended, "timeout")
    assert.deepEqual(world.socket.take(), [{ type: "cancel", payload: { callID: "1" } }])
    // The answer may still come, and is nothing.
    world.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(world.timers.size, 1)
})

test("the time of a call that waits passes, too, and the server is told what is left", async () => {
    const world = new World()
    const client = world.connect({ timeout: 5000 })
    const waits = codeOf(client.actor("a").call("waits()"))
    const short = codeOf(client.actor("a").call("short()", [], { timeout: 100 }))
    client.actor("a").call("long()", [], { timeout: 60_000 })
    await world.pass(5000)
    assert.equal(await waits, "timeout")
    assert.equal(await short, "timeout")
    world.socket.greet()
    assert.deepEqual(invocations(world.socket).map(({ payload }) => [payload.targetIdentifier, payload.timeoutMilliseconds]), [["long()", 55_000]])
})

test("without a time a call waits for ever", async () => {
    const world = new World()
    const client = await world.live({ timeout: 0 })
    const call = client.actor("a").call("f()")
    await world.pass(15_000)
    world.socket.receive("x", {})
    world.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a time that no timer can hold is the longest that one can", async () => {
    const world = new World()
    const client = await world.live()
    // As in a browser, where more than 2^31 - 1 milliseconds are none.
    const call = client.actor("a").call("f()", [], { timeout: Infinity })
    assert.ok([...world.timers.values()].every(({ at }) => at - world.time < 2 ** 31))
    assert.equal(invocations(world.socket)[0].payload.timeoutMilliseconds, 2e9)
    world.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a signal cancels, before, while it waits and while it runs", async () => {
    const world = new World()
    const client = world.connect()
    const actor = client.actor("a")
    assert.equal(await codeOf(actor.call("f()", [], { signal: AbortSignal.abort() })), "cancelled")
    const controller = new AbortController()
    const waiting = codeOf(actor.call("waiting()", [], { signal: controller.signal }))
    controller.abort()
    assert.equal(await waiting, "cancelled")
    await settle()
    world.socket.greet()
    assert.deepEqual(invocations(world.socket), [])
    const other = new AbortController()
    const running = codeOf(actor.call("running()", [], { signal: other.signal }))
    const [{ payload }] = invocations(world.socket)
    other.abort()
    assert.equal(await running, "cancelled")
    assert.deepEqual(world.socket.take(), [{ type: "cancel", payload: { callID: payload.callID } }])
    const late = new AbortController()
    actor.call("answered()", [], { signal: late.signal })
    const [{ payload: answered }] = invocations(world.socket)
    world.socket.receive("response", { callID: answered.callID })
    late.abort()
    assert.deepEqual(world.socket.take(), [])
})

test("a call that was sent and is not idempotent has an unknown outcome", async () => {
    const world = new World()
    const client = await world.live()
    const call = codeOf(client.actor("a").call("f()"))
    world.socket.lose()
    assert.equal(await call, "unknownOutcome")
})

test("an idempotent one is repeated by its number, and by the name of its first connection", async () => {
    const world = new World()
    const client = await world.live({}, { session: "first" })
    const call = client.actor("a").call("pay(_:)", [5], { idempotent: true })
    const [{ type, payload }] = invocations(world.socket)
    assert.deepEqual([type, payload.session, payload.callID], ["invocation", "first", "1"])
    world.socket.lose()
    const later = client.actor("a").call("later()", [], { idempotent: true })
    await world.pass(200)
    world.socket.greet({ session: "second" })
    const sent = invocations(world.socket)
    assert.deepEqual(sent, [
        { type: "repeat", payload: { ...payload, arguments: [5] } },
        { type: "invocation", payload: { callID: "2", actorID: "a", targetIdentifier: "later()", arguments: [], session: "second" } },
    ])
    world.socket.lose()
    await world.pass(1000)
    world.socket.greet({ session: "third" })
    assert.deepEqual(
        invocations(world.socket).map(({ type, payload }) => [type, payload.callID, payload.session]),
        [["repeat", "1", "first"], ["repeat", "2", "second"]]
    )
    world.socket.receive("response", { callID: "1", result: "paid" })
    world.socket.receive("response", { callID: "2", result: "too" })
    assert.deepEqual([await call, await later], ["paid", "too"])
})

test("a server that keeps no answers gets no repeats", async () => {
    const world = new World()
    const client = world.connect()
    const never = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    await settle()
    world.socket.open()
    world.socket.receive("error", { code: "malformedEnvelope" })
    assert.equal("session" in invocations(world.socket)[0].payload, false)
    world.socket.lose()
    assert.equal(await never, "unknownOutcome")
    await world.pass(200)
    world.socket.greet()
    const kept = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    world.socket.lose()
    await world.pass(1000)
    world.socket.open()
    world.socket.receive("error", { code: "malformedEnvelope" })
    assert.equal(await kept, "unknownOutcome")
})

test("given up, what was never sent is unavailable, and what was sent is unknown", async () => {
    const world = new World()
    const client = await world.live()
    const sent = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    world.socket.lose()
    const unsent = codeOf(client.actor("a").call("g()"))
    await world.pass(200)
    world.socket.lose(1006, "Unexpected server response: 403")
    assert.deepEqual([await sent, await unsent], ["unknownOutcome", "unavailable"])
    assert.equal(await codeOf(client.actor("a").call("h()")), "unavailable")
})

test("calls are kept back while as many are under way as the server takes, streams that begin among them", async () => {
    const world = new World()
    const client = await world.live({}, { callsPerConnection: 3 })
    client.actor("a").state().subscribe(() => {})
    for (let index = 0; index < 5; index++) client.actor("a").call(`f${index}()`)
    const targets = () => invocations(world.socket).map(({ payload }) => payload.targetIdentifier)
    assert.deepEqual(targets(), ["observeState", "f0()", "f1()"])
    world.socket.receive("response", { callID: "2" })
    assert.deepEqual(targets(), ["f2()"])
    world.socket.receive("streamStart", { streamID: "s", callID: "1", epoch: "e" })
    assert.deepEqual(targets(), ["f3()"])
    world.socket.receive("response", { callID: "99" })
    assert.deepEqual(targets(), [])
})

test("so are those that would be too many bytes, each with 4,096 more", async () => {
    const world = new World()
    const client = await world.live({}, { callBytesPerConnection: 12_000 })
    for (let index = 0; index < 4; index++) client.actor("a").call("f(_:)", ["x".repeat(1000)])
    assert.equal(invocations(world.socket).length, 2)
    world.socket.receive("response", { callID: "1" })
    assert.equal(invocations(world.socket).length, 1)
    // One alone always goes.
    const other = await new World().live({}, { callBytesPerConnection: 10 })
    other.actor("a").call("f()")
})

test("a call that is larger than the server takes is not sent", async () => {
    const world = new World()
    const client = await world.live({}, { messageSize: 200 })
    assert.equal(await codeOf(client.actor("a").call("f(_:)", ["é".repeat(100)])), "invalidArguments")
    assert.deepEqual(invocations(world.socket), [])
    client.actor("a").call("f(_:)", ["x"])
    assert.equal(invocations(world.socket).length, 1)
})

test("so many calls wait for a connection at most", async () => {
    const world = new World()
    const client = world.connect({ waitingCalls: 3 })
    const calls = Array.from({ length: 5 }, () => codeOf(client.actor("a").call("f()")))
    assert.equal(await calls[3], "rateLimited")
    assert.equal(await calls[4], "rateLimited")
    await settle()
    world.socket.greet()
    assert.equal(invocations(world.socket).length, 3)
    const ordinary = new World().connect()
    const many = Array.from({ length: 1001 }, () => codeOf(ordinary.actor("a").call("f()")))
    assert.equal(await many[1000], "rateLimited")
})

test("behind goAway calls wait for the next connection, and what was sent before is answered", async () => {
    const world = new World()
    const client = await world.live()
    const before = client.actor("a").call("before()")
    const old = world.socket
    old.take()
    old.receive("goAway", { reason: "draining", reconnectAfterMilliseconds: 100 })
    const behind = client.actor("a").call("behind()")
    assert.deepEqual(old.take(), [])
    old.receive("response", { callID: "1", result: "b" })
    assert.equal(await before, "b")
    await world.pass(200)
    world.socket.greet()
    assert.equal(old.wasClosed, true)
    assert.equal(invocations(world.socket)[0].payload.targetIdentifier, "behind()")
    world.socket.receive("response", { callID: "2" })
    await behind
})

test("an idempotent call that the old server leaves unanswered is repeated at the new one", async () => {
    const world = new World()
    const client = await world.live()
    const call = client.actor("a").call("f()", [], { idempotent: true })
    const old = world.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await world.pass(200)
    world.socket.greet({ session: "new" })
    assert.deepEqual(invocations(world.socket), [])
    assert.equal(old.wasClosed, undefined)
    old.lose(1001)
    assert.deepEqual(invocations(world.socket).map(({ type, payload }) => [type, payload.session]), [["repeat", "session"]])
    world.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("what is sent again comes before what waited", async () => {
    const world = new World()
    const client = await world.live({}, { callsPerConnection: 1 })
    client.actor("a").call("first()", [], { idempotent: true })
    client.actor("a").call("second()", [], { idempotent: true })
    world.socket.lose()
    await world.pass(200)
    world.socket.greet()
    assert.deepEqual(
        invocations(world.socket).map(({ payload }) => payload.targetIdentifier),
        ["first()", "second()"]
    )
})

test("calls that the old connection still answers take no room of the new one", async () => {
    const world = new World()
    const client = await world.live({}, { callsPerConnection: 1 })
    const call = client.actor("a").call("old()")
    const old = world.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await world.pass(200)
    world.socket.greet({ callsPerConnection: 1 })
    client.actor("a").call("new()")
    assert.equal(invocations(world.socket).length, 1)
    old.receive("response", { callID: "1" })
    await call
    client.actor("a").call("newer()")
    assert.equal(invocations(world.socket).length, 0)
})

test("a client that is refused still gets the answers of the server that sent it away", async () => {
    const world = new World()
    const client = await world.live()
    const call = client.actor("a").call("f()")
    const old = world.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await world.pass(200)
    world.socket.lose(1006, "Unexpected server response: 403")
    assert.equal(client.status.getSnapshot().phase, "refused")
    old.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})
