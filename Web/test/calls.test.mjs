import assert from "node:assert/strict"
import { test } from "node:test"
import { actorType, array, data, date, struct, TrebuchetError } from "../dist/trebuchet.js"
import { exact } from "../dist/trebuchet-exact.js"
import { codeOf, settle, FakeEnvironment } from "./fakes.mjs"

const invocations = (socket) => socket.take().filter(({ type }) => type === "invocation" || type === "repeat")

test("a call waits for the connection, and is answered", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const call = client.actor("todos").call("addTodo(title:)", ["Milk"])
    await settle()
    fake.socket.open()
    // Its session and limits come with the answer to hello.
    assert.deepEqual(invocations(fake.socket), [])
    fake.socket.receive("hello", { session: "s", limits: {} })
    assert.deepEqual(invocations(fake.socket), [
        { type: "invocation", payload: { callID: "1", actorID: "todos", targetIdentifier: "addTodo(title:)", arguments: ["Milk"] } },
    ])
    fake.socket.receive("response", { callID: "1", result: { id: 1 } })
    assert.deepEqual(await call, { id: 1 })
    const nothing = client.actor("todos").call("clear()")
    fake.socket.receive("response", { callID: "2" })
    assert.equal(await nothing, undefined)
})

test("arguments are those of the moment of the call", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const list = [1]
    client.actor("a").call("f(_:)", [list])
    list.push(2)
    await settle()
    fake.socket.greet()
    assert.deepEqual(fake.socket.sent[1].payload.arguments, [[1]])
})

test("what cannot be written is refused at once", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const loop = {}
    loop.loop = loop
    assert.equal(await codeOf(client.actor("a").call("f(_:)", [loop])), "invalidArguments")
    assert.equal(await codeOf(client.actor("a").call("f(_:)", [1n << 62n])), "invalidArguments")
    for (const args of ["Milk", { title: "Milk" }, null]) {
        const refusal = { code: "invalidArguments", message: "f(_:): the arguments are not an array" }
        await assert.rejects(client.actor("a").call("f(_:)", args), refusal)
    }
    assert.deepEqual(invocations(fake.socket), [])
    const large = await new FakeEnvironment().live({ json: exact })
    large.actor("a").call("f(_:)", [1n << 62n])
})

test("what JSON would change is refused at once, with its place", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    for (const [value, flaw] of [[NaN, ": NaN"], [{ x: [-Infinity] }, "/x/0: -Infinity"], [() => {}, ": a function"]]) {
        await assert.rejects(client.actor("a").call("f(_:)", [value]), { code: "invalidArguments", message: `f(_:): /0${flaw} cannot be sent as JSON` })
    }
    assert.throws(() => client.actor("a").state().filter({ where: { path: "", op: "eq", value: NaN } }), { code: "invalidArguments" })
    assert.deepEqual(invocations(fake.socket), [])
    client.actor("a").call("f(_:)", [{ x: undefined, y: [undefined] }])
    assert.deepEqual(invocations(fake.socket)[0].payload.arguments, [{ y: [null] }])
})

test("an error is a value, with what the method threw", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = client.actor("bank").call("pay()")
    fake.socket.receive("response", {
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
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const notes = client.actor(Notes, "notes")
    const call = notes.add("a", new Date(when), { timeout: 500 })
    const [{ payload }] = invocations(fake.socket)
    assert.deepEqual(payload, {
        callID: "1", actorID: "notes", targetIdentifier: "add(_:at:)", arguments: ["a", when], timeoutMilliseconds: 500, session: "session",
    })
    fake.socket.receive("response", { callID: "1", result: { at: when } })
    assert.deepEqual(await call, { at: new Date(when) })
    const refused = notes.add("a", null)
    assert.deepEqual(invocations(fake.socket)[0].payload.arguments, ["a", null])
    fake.socket.receive("response", { callID: "2", error: { code: "application", message: "", type: "Module.Full", data: { since: when } } })
    assert.deepEqual((await refused.result()).error.data, { since: new Date(when) })
    // What is left out is null.
    notes.add("a")
    assert.deepEqual(invocations(fake.socket)[0].payload.arguments, ["a", null])
    notes.send([Uint8Array.of(1, 2)], { timeout: 1000 })
    assert.deepEqual(invocations(fake.socket)[0].payload.arguments, [["AQI="]])
    const { clear } = notes
    clear()
    assert.deepEqual(invocations(fake.socket)[0].payload.arguments, [])
    assert.equal(notes.state, notes.state)
    assert.deepEqual(Object.keys(notes), ["add", "clear", "send", "state", "moves"])
})

test("an answer that cannot be read ends its call alone", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const Broken = actorType({ name: "B", methods: { f: { target: "f()", result: data } } })
    const call = client.actor(Broken, "b").f()
    fake.socket.receive("response", { callID: "1", result: "no base64 $" })
    assert.equal(await codeOf(call), "internal")
    assert.equal(client.status.getSnapshot().phase, "live")
})

test("a call ends by its time, and is cancelled at the server", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = client.actor("a").call("f()", [], { timeout: 1000 })
    const ended = codeOf(call)
    assert.equal(invocations(fake.socket)[0].payload.timeoutMilliseconds, 1000)
    await fake.pass(999)
    assert.deepEqual(fake.socket.take(), [])
    await fake.pass(1)
    assert.equal(await ended, "timeout")
    assert.deepEqual(fake.socket.take(), [{ type: "cancel", payload: { callID: "1" } }])
    // The answer may still come, and is nothing.
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(fake.timers.size, 1)
})

test("the time of a call that waits passes, too, and the server is told what is left", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect({ timeout: 5000 })
    const waits = codeOf(client.actor("a").call("waits()"))
    const short = codeOf(client.actor("a").call("short()", [], { timeout: 100 }))
    client.actor("a").call("long()", [], { timeout: 60_000 })
    await fake.pass(5000)
    assert.equal(await waits, "timeout")
    assert.equal(await short, "timeout")
    fake.socket.greet()
    assert.deepEqual(invocations(fake.socket).map(({ payload }) => [payload.targetIdentifier, payload.timeoutMilliseconds]), [["long()", 55_000]])
})

test("without a time a call waits for ever", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({ timeout: 0 })
    const call = client.actor("a").call("f()")
    await fake.pass(15_000)
    fake.socket.receive("x", {})
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a time that no timer can hold is the longest that one can", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    // As in a browser, where more than 2^31 - 1 milliseconds are none.
    const call = client.actor("a").call("f()", [], { timeout: Infinity })
    assert.ok([...fake.timers.values()].every(({ at }) => at - fake.time < 2 ** 31))
    assert.equal(invocations(fake.socket)[0].payload.timeoutMilliseconds, 2e9)
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a signal cancels, before, while it waits and while it runs", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const actor = client.actor("a")
    assert.equal(await codeOf(actor.call("f()", [], { signal: AbortSignal.abort() })), "cancelled")
    const controller = new AbortController()
    const waiting = codeOf(actor.call("waiting()", [], { signal: controller.signal }))
    controller.abort()
    assert.equal(await waiting, "cancelled")
    await settle()
    fake.socket.greet()
    assert.deepEqual(invocations(fake.socket), [])
    const other = new AbortController()
    const running = codeOf(actor.call("running()", [], { signal: other.signal }))
    const [{ payload }] = invocations(fake.socket)
    other.abort()
    assert.equal(await running, "cancelled")
    assert.deepEqual(fake.socket.take(), [{ type: "cancel", payload: { callID: payload.callID } }])
    const late = new AbortController()
    actor.call("answered()", [], { signal: late.signal })
    const [{ payload: answered }] = invocations(fake.socket)
    fake.socket.receive("response", { callID: answered.callID })
    late.abort()
    assert.deepEqual(fake.socket.take(), [])
})

test("a call that was sent and is not idempotent has an unknown outcome", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = codeOf(client.actor("a").call("f()"))
    fake.socket.lose()
    assert.equal(await call, "unknownOutcome")
})

test("an idempotent one is repeated by its number, and by the name of its first connection", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { session: "first" })
    const call = client.actor("a").call("pay(_:)", [5], { idempotent: true })
    const [{ type, payload }] = invocations(fake.socket)
    assert.deepEqual([type, payload.session, payload.callID], ["invocation", "first", "1"])
    fake.socket.lose()
    const later = client.actor("a").call("later()", [], { idempotent: true })
    await fake.pass(200)
    fake.socket.greet({ session: "second" })
    const sent = invocations(fake.socket)
    assert.deepEqual(sent, [
        { type: "repeat", payload: { ...payload, arguments: [5] } },
        { type: "invocation", payload: { callID: "2", actorID: "a", targetIdentifier: "later()", arguments: [], session: "second" } },
    ])
    fake.socket.lose()
    await fake.pass(1000)
    fake.socket.greet({ session: "third" })
    assert.deepEqual(
        invocations(fake.socket).map(({ type, payload }) => [type, payload.callID, payload.session]),
        [["repeat", "1", "first"], ["repeat", "2", "second"]]
    )
    fake.socket.receive("response", { callID: "1", result: "paid" })
    fake.socket.receive("response", { callID: "2", result: "too" })
    assert.deepEqual([await call, await later], ["paid", "too"])
})

test("a server that keeps no answers gets no repeats", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const never = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    await settle()
    fake.socket.open()
    fake.socket.receive("error", { code: "malformedEnvelope" })
    assert.equal("session" in invocations(fake.socket)[0].payload, false)
    fake.socket.lose()
    assert.equal(await never, "unknownOutcome")
    await fake.pass(200)
    fake.socket.greet()
    const kept = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    fake.socket.lose()
    await fake.pass(1000)
    fake.socket.open()
    fake.socket.receive("error", { code: "malformedEnvelope" })
    assert.equal(await kept, "unknownOutcome")
})

test("given up, what was never sent is unavailable, and what was sent is unknown", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const sent = codeOf(client.actor("a").call("f()", [], { idempotent: true }))
    fake.socket.lose()
    const unsent = codeOf(client.actor("a").call("g()"))
    await fake.pass(200)
    fake.socket.lose(1006, "Unexpected server response: 403")
    assert.deepEqual([await sent, await unsent], ["unknownOutcome", "unavailable"])
    assert.equal(await codeOf(client.actor("a").call("h()")), "unavailable")
})

test("calls are kept back while as many are under way as the server takes, streams that begin among them", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { callsPerConnection: 3 })
    client.actor("a").state().subscribe(() => {})
    for (let index = 0; index < 5; index++) client.actor("a").call(`f${index}()`)
    const targets = () => invocations(fake.socket).map(({ payload }) => payload.targetIdentifier)
    assert.deepEqual(targets(), ["observeState", "f0()", "f1()"])
    fake.socket.receive("response", { callID: "2" })
    assert.deepEqual(targets(), ["f2()"])
    fake.socket.receive("streamStart", { streamID: "s", callID: "1", epoch: "e" })
    assert.deepEqual(targets(), ["f3()"])
    fake.socket.receive("response", { callID: "99" })
    assert.deepEqual(targets(), [])
})

test("so are those that would be too many bytes, each with 4,096 more", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { callBytesPerConnection: 12_000 })
    for (let index = 0; index < 4; index++) client.actor("a").call("f(_:)", ["x".repeat(1000)])
    assert.equal(invocations(fake.socket).length, 2)
    fake.socket.receive("response", { callID: "1" })
    assert.equal(invocations(fake.socket).length, 1)
    // One alone always goes.
    const other = await new FakeEnvironment().live({}, { callBytesPerConnection: 10 })
    other.actor("a").call("f()")
})

test("a call that is larger than the server takes is not sent", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { messageSize: 200 })
    assert.equal(await codeOf(client.actor("a").call("f(_:)", ["é".repeat(100)])), "invalidArguments")
    assert.deepEqual(invocations(fake.socket), [])
    client.actor("a").call("f(_:)", ["x"])
    assert.equal(invocations(fake.socket).length, 1)
})

test("so many calls wait for a connection at most", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect({ waitingCalls: 3 })
    const calls = Array.from({ length: 5 }, () => codeOf(client.actor("a").call("f()")))
    assert.equal(await calls[3], "rateLimited")
    assert.equal(await calls[4], "rateLimited")
    await settle()
    fake.socket.greet()
    assert.equal(invocations(fake.socket).length, 3)
    const ordinary = new FakeEnvironment().connect()
    const many = Array.from({ length: 1001 }, () => codeOf(ordinary.actor("a").call("f()")))
    assert.equal(await many[1000], "rateLimited")
})

test("behind goAway calls wait for the next connection, and what was sent before is answered", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const before = client.actor("a").call("before()")
    const old = fake.socket
    old.take()
    old.receive("goAway", { reason: "draining", reconnectAfterMilliseconds: 100 })
    const behind = client.actor("a").call("behind()")
    assert.deepEqual(old.take(), [])
    old.receive("response", { callID: "1", result: "b" })
    assert.equal(await before, "b")
    await fake.pass(200)
    fake.socket.greet()
    assert.equal(old.wasClosed, true)
    assert.equal(invocations(fake.socket)[0].payload.targetIdentifier, "behind()")
    fake.socket.receive("response", { callID: "2" })
    await behind
})

test("an idempotent call that the old server leaves unanswered is repeated at the new one", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = client.actor("a").call("f()", [], { idempotent: true })
    const old = fake.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await fake.pass(200)
    fake.socket.greet({ session: "new" })
    assert.deepEqual(invocations(fake.socket), [])
    assert.equal(old.wasClosed, undefined)
    old.lose(1001)
    assert.deepEqual(invocations(fake.socket).map(({ type, payload }) => [type, payload.session]), [["repeat", "session"]])
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("what is sent again comes before what waited", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { callsPerConnection: 1 })
    client.actor("a").call("first()", [], { idempotent: true })
    client.actor("a").call("second()", [], { idempotent: true })
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.greet()
    assert.deepEqual(
        invocations(fake.socket).map(({ payload }) => payload.targetIdentifier),
        ["first()", "second()"]
    )
})

test("calls that the old connection still answers take no room of the new one", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { callsPerConnection: 1 })
    const call = client.actor("a").call("old()")
    const old = fake.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await fake.pass(200)
    fake.socket.greet({ callsPerConnection: 1 })
    client.actor("a").call("new()")
    assert.equal(invocations(fake.socket).length, 1)
    old.receive("response", { callID: "1" })
    await call
    client.actor("a").call("newer()")
    assert.equal(invocations(fake.socket).length, 0)
})

test("a client that is refused still gets the answers of the server that sent it away", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = client.actor("a").call("f()")
    const old = fake.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    await fake.pass(200)
    fake.socket.lose(1006, "Unexpected server response: 403")
    assert.equal(client.status.getSnapshot().phase, "refused")
    old.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})
