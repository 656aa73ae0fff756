// The traces of calls, and the reported spans.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import { test } from "node:test"
import { newTrace, traces } from "../dist/trebuchet-traces.js"
import { Daemon, tool } from "./daemon.mjs"
import { FakeEnvironment } from "./fakes.mjs"

const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
const shape = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/
const trace = (traceparent) => traceparent.slice(3, 35)
const span = (traceparent) => traceparent.slice(36, 52)
const sent = (socket) => socket.take().filter(({ type }) => type === "invocation" || type === "repeat").map(({ payload }) => payload)

test("a call sends its trace context where one is set, and nothing else", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    client.actor("a").call("f()", [], { traceparent: given })
    client.actor("a").call("f()")
    const [first, second] = sent(fake.socket)
    assert.equal(first.traceparent, given)
    assert.deepEqual(second, { callID: second.callID, actorID: "a", targetIdentifier: "f()", arguments: [] })
})

test("a repeated call keeps its trace context", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    client.actor("a").call("f()", [], { traceparent: given, idempotent: true })
    assert.equal(sent(fake.socket)[0].traceparent, given)
    fake.socket.lose()
    await fake.pass(1000)
    fake.socket.greet()
    assert.equal(sent(fake.socket)[0].traceparent, given)
})

test("calls start traces at the sampling rate, or join the current one", async () => {
    const fake = new FakeEnvironment()
    let current
    const client = await fake.live({ traces: traces({ current: () => current, sampling: 1 }) })
    const call = (options) => {
        fake.socket.take()
        client.actor("a").call("f()", [], options)
        return sent(fake.socket)[0].traceparent
    }
    const [one, two] = [call(), call()]
    assert.match(one, shape)
    assert.notEqual(trace(one), trace(two))
    current = given
    // Without a receiver of spans, the span at the server is a child of the current one.
    assert.equal(call(), given)
    const own = newTrace(false)
    assert.equal(call({ traceparent: own }), own)
    assert.match(own, /-00$/)
    for (const none of ["", "x", given.toUpperCase(), given + "-1", "00-" + "0".repeat(32) + given.slice(35), "ff" + given.slice(2), null]) {
        current = none
        assert.match(call(), shape, String(none))
    }
    const never = await fake.live({ traces: traces() })
    fake.socket.take()
    never.actor("a").call("f()")
    assert.equal("traceparent" in sent(fake.socket)[0], false)
})

test("spans of sampled traces are reported with the data of the response", async () => {
    const fake = new FakeEnvironment()
    const spans = []
    const client = await fake.live({ traces: traces({ spanEnded: (span) => spans.push(span) }) })
    fake.socket.take()
    const call = client.actor("todos").call("f(_:)", [1], { traceparent: given })
    const [{ callID, traceparent }] = sent(fake.socket)
    // A separate span.
    assert.equal(trace(traceparent), trace(given))
    assert.notEqual(span(traceparent), span(given))
    const answered = traceparent.slice(0, 36) + "b7ad6b7169203331-01"
    fake.socket.receive("response", { callID, result: 2, traceparent: answered })
    assert.equal(await call, 2)
    const [{ began, ended, ...told }] = spans
    assert.deepEqual(told, { name: "f(_:)", actor: "todos", traceparent, parent: given, answered, error: undefined })
    assert.ok(began <= ended && ended <= Date.now())
    const failed = client.actor("todos").call("f(_:)", [1], { traceparent: given, timeout: 50 })
    await fake.pass(50)
    assert.equal((await failed.result()).error.code, "timeout")
    assert.deepEqual([spans[1].error, spans[1].answered], ["timeout", undefined])
    const untold = [{ traceparent: newTrace(false) }, {}].map((options) => client.actor("todos").call("f(_:)", [1], options).result())
    client.close()
    await Promise.all(untold)
    assert.equal(spans.length, 2)
})

test("an error of a function of the program does not fail a call", async (context) => {
    const errors = context.mock.method(console, "error", () => {}).mock
    const fake = new FakeEnvironment()
    const fail = () => {
        throw new Error("mine")
    }
    const client = await fake.live({ traces: traces({ current: fail, sampling: 1, spanEnded: fail }) })
    fake.socket.take()
    const [first, second] = [client.actor("a").call("f()"), client.actor("a").call("g()")]
    for (const { callID } of sent(fake.socket)) fake.socket.receive("response", { callID, result: callID })
    assert.deepEqual([await first, await second].length, 2)
    assert.equal(errors.callCount(), 4)
})

test("a trace goes from the client through the server to a collector, and back", { skip: tool ? false : "TREBUCHET_TOOL is not set", timeout: 60_000 }, async () => {
    const seen = []
    let arrived
    const all = new Promise((resolve) => (arrived = resolve))
    const collector = createServer((request, response) => {
        let text = ""
        request.on("data", (part) => (text += part))
        request.on("end", () => {
            for (const { scopeSpans } of JSON.parse(text).resourceSpans) for (const { spans } of scopeSpans) seen.push(...spans)
            response.end("{}")
            if (seen.length >= 2) arrived()
        })
    })
    await new Promise((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const daemon = await Daemon.start(["--otlp", `http://127.0.0.1:${collector.address().port}`, "--trace-sample", "0"])
    const spans = []
    const client = daemon.connect({ traces: traces({ sampling: 1, spanEnded: (span) => spans.push(span) }) })
    try {
        await client.actor("counter").call("add(_:)", [1])
        await client.actor("counter").call("add(_:)", [2], { traceparent: given })
        // An unsampled trace has no spans.
        await client.actor("counter").call("add(_:)", [3], { traceparent: newTrace(false) })
        await all
        assert.equal(spans.length, 2)
        for (const [at, { name, traceparent, answered }] of spans.entries()) {
            const atServer = seen.find(({ traceId }) => traceId === trace(traceparent))
            assert.equal(atServer.parentSpanId, span(traceparent))
            assert.equal(atServer.spanId, span(answered))
            assert.equal(trace(answered), trace(traceparent))
            assert.ok(atServer.name.endsWith(name))
            if (at === 1) assert.equal(traceparent.slice(0, 35), given.slice(0, 35))
        }
        assert.equal(seen.length, 2)
    } finally {
        client.close()
        await daemon.end()
        collector.close()
    }
})
