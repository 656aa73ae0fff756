import assert from "node:assert/strict"
import { test } from "node:test"
import { actorType, array, data, date, struct, TrebuchetError } from "../dist/trebuchet.js"
import { exact } from "../dist/trebuchet-exact.js"
import { codeOf, settle, FakeEnvironment } from "./fakes.mjs"

const invocations = (socket) => socket.take().filter(({ type }) => type === "invocation" || type === "repeat")

test("a call waits for the connection and is answered", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const call = client.actor("todos").call("addTodo(title:)", ["Milk"])
    await settle()
    fake.socket.open()
    // The session and the limits arrive with the response to hello.
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

test("arguments are encoded at the time of the call", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const list = [1]
    client.actor("a").call("f(_:)", [list])
    list.push(2)
    await settle()
    fake.socket.greet()
    assert.deepEqual(fake.socket.sent[1].payload.arguments, [[1]])
})

test("arguments that cannot be encoded fail at once", async () => {
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

test("values that JSON would change fail at once, with their path", async () => {
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

test("an error is a value that includes the error of the method", async () => {
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
    // Omitted arguments are null.
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

test("a response that cannot be decoded ends only its call", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const Broken = actorType({ name: "B", methods: { f: { target: "f()", result: data } } })
    const call = client.actor(Broken, "b").f()
    fake.socket.receive("response", { callID: "1", result: "no base64 $" })
    assert.equal(await codeOf(call), "internal")
    assert.equal(client.status.getSnapshot().phase, "live")
})

test("a call ends at its timeout and is cancelled at the server", async () => {
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
    // A late response is ignored.
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(fake.timers.size, 1)
})

test("the timeout of a queued call runs, and the server receives the remaining time", async () => {
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

test("a call without a timeout waits without a limit", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({ timeout: 0 })
    const call = client.actor("a").call("f()")
    await fake.pass(15_000)
    fake.socket.receive("x", {})
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a timeout beyond the range of timers is the longest possible one", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    // As in a browser, where delays above 2^31 - 1 milliseconds become 0.
    const call = client.actor("a").call("f()", [], { timeout: Infinity })
    assert.ok([...fake.timers.values()].every(({ at }) => at - fake.time < 2 ** 31))
    assert.equal(invocations(fake.socket)[0].payload.timeoutMilliseconds, 2e9)
    fake.socket.receive("response", { callID: "1", result: 1 })
    assert.equal(await call, 1)
})

test("a signal cancels a call before, while it is queued, and while it runs", async () => {
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

test("a sent call that is not idempotent has an unknown outcome", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = codeOf(client.actor("a").call("f()"))
    fake.socket.lose()
    assert.equal(await call, "unknownOutcome")
})

test("an idempotent call is repeated with its number and the name of its first connection", async () => {
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

test("a server without an idempotency cache gets no repeated calls", async () => {
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

test("after the client gives up, unsent calls are unavailable, and sent calls have an unknown outcome", async () => {
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

test("calls are queued at the server's limit of calls in flight, starting streams included", async () => {
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

test("calls are queued at the limit of bytes, with 4,096 bytes added for each", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { callBytesPerConnection: 12_000 })
    for (let index = 0; index < 4; index++) client.actor("a").call("f(_:)", ["x".repeat(1000)])
    assert.equal(invocations(fake.socket).length, 2)
    fake.socket.receive("response", { callID: "1" })
    assert.equal(invocations(fake.socket).length, 1)
    // A single call is always sent.
    const other = await new FakeEnvironment().live({}, { callBytesPerConnection: 10 })
    other.actor("a").call("f()")
})

test("a call that exceeds the message limit of the server is not sent", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { messageSize: 200 })
    assert.equal(await codeOf(client.actor("a").call("f(_:)", ["é".repeat(100)])), "invalidArguments")
    assert.deepEqual(invocations(fake.socket), [])
    client.actor("a").call("f(_:)", ["x"])
    assert.equal(invocations(fake.socket).length, 1)
})

test("the number of queued calls has a limit", async () => {
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

test("after goAway new calls wait for the next connection, and sent calls are answered", async () => {
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

test("an idempotent call without a response from the old server is repeated at the new one", async () => {
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

test("repeated calls are sent before queued ones", async () => {
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

test("calls in flight at the old connection do not count in the limits of the new one", async () => {
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

test("a client that the new server refuses still gets the responses of the draining one", async () => {
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
