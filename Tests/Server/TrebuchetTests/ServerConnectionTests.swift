import Bytes
import Networking
import TestSupport
import Testing
import Transports
import TrebuchetTesting
import TrebuchetWire
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// The responses of a server over a recording connection, with a clock that the test advances.
@Suite(.timeLimit(.minutes(5)), .serialized) struct ServerConnectionTests {
    /// Records the messages sent.
    ///
    /// `@unchecked Sendable`: used on the connection's reactor alone.
    final class Link: MessageLink, @unchecked Sendable {
        var texts: [String] = []
        var isWritable = true
        var memory: MemoryAccount?
        var host: AddressKey?
        var events: [String] = []
        /// How many messages had a part that others share.
        var sharedCount = 0

        func send(_ body: (inout ByteBuffer) -> Void) {
            var buffer = ByteBuffer()
            body(&buffer)
            texts.append(String(decoding: buffer.bytes, as: UTF8.self))
        }
        func send(shared: SharedBytes, headCount: Int, head: (inout ByteBuffer) -> Void) {
            sharedCount += 1
            var buffer = ByteBuffer()
            head(&buffer)
            if buffer.count != headCount { events.append("head of \(buffer.count) bytes") }
            buffer.append(shared.bytes)
            texts.append(String(decoding: buffer.bytes, as: UTF8.self))
        }
        func inOneWrite(_ body: () -> Void) { body() }
        func sendDrainPing() { events.append("asked") }
        func close(_ code: WebSocketCloseCode, reason: String) { events.append("close \(code) \(reason)") }
        func abort() { events.append("abort") }
        func pauseReading() { events.append("pause") }
        func resumeReading() { events.append("resume") }
    }

    /// A server with one connection.
    final class Rig: Sendable {
        let clock = TestTime()
        let server: TrebuchetServer
        let link = Link()
        let connection: ServerConnection
        private let legacy: LoopBound<LegacyLink>?
        let journal = Journal()
        private var reactor: Reactor { connection.shard.reactor }

        init(
            _ change: (inout ServerLimits) -> Void = { _ in }, isLegacy: Bool = false, largestMessage: Int = .max
        ) async {
            var limits = ServerLimits()
            change(&limits)
            server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), clock: clock, limits: limits)
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "list")
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
            let (shard, link) = (server.shards[0], link)
            (connection, legacy) = await shard.reactor.perform {
                let legacy = isLegacy ? LegacyLink(over: link) : nil
                let connection = ServerConnection(
                    legacy ?? link, name: shard.newConnectionName(), shard: shard, largestMessage: largestMessage)
                return (connection, legacy.map { LoopBound($0, on: shard.reactor) })
            }
        }

        func on<Result: Sendable>(_ body: @escaping @Sendable (ServerConnection) -> Result) async -> Result {
            let connection = connection
            let result = await reactor.perform { body(connection) }
            await reactor.perform {}
            return result
        }

        /// Sends a message and returns the immediate responses.
        @discardableResult
        func receive(_ text: String) async -> [String] {
            await on { [self] connection in
                link.texts = []
                Array(text.utf8).withUnsafeBytes { bytes in
                    if let legacy { legacy.value.receive(bytes, for: connection) } else { connection.receive(bytes) }
                }
                return link.texts
            }
        }

        func call(_ number: Int, _ actor: String, _ target: String, _ arguments: String, _ more: String = "") async
            -> [String]
        {
            await receive(
                #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"\#(actor)","targetIdentifier":"\#(target)","#
                    + #""arguments":[\#(arguments)]\#(more)}}"#)
        }

        func observe(_ number: Int) async -> [String] {
            await receive(
                #"{"type":"invocation","payload":{"callID":"\#(number)","actorID":"list","targetIdentifier":"observeState"}}"#
            )
        }

        var texts: [String] { get async { let link = link; return await on { _ in link.texts } } }
        var events: [String] { get async { let link = link; return await on { _ in link.events } } }

        func waitFor(_ text: String) async -> Bool {
            await eventually { await self.texts.contains { $0.contains(text) } }
        }
    }

    func result(_ number: Int, _ result: String) -> String {
        #"{"type":"response","payload":{"callID":"\#(number)","result":\#(result)}}"#
    }

    func failure(_ number: Int, _ code: String, _ message: String) -> String {
        #"{"type":"response","payload":{"callID":"\#(number)","error":{"code":"\#(code)","message":"\#(message)"}}}"#
    }

    @Test("a call is answered with its result or its error")
    func calls() async {
        let rig = await Rig()
        #expect(await rig.call(1, "calculator", "same(_:)", "5") == [result(1, "5")])
        #expect(await rig.call(2, "calculator", "nothing()", "") == [#"{"type":"response","payload":{"callID":"2"}}"#])
        #expect(
            await rig.call(3, "nobody", "same(_:)", "5") == [
                failure(3, "actorNotFound", "no actor 'nobody' is exposed")
            ])
        let unknown = await rig.call(4, "calculator", "divide(_:)", "5")
        #expect(unknown.first?.contains("actor 'calculator' has no method 'divide(_:)'; it has ") == true)
        #expect(unknown.first?.contains(#""code":"methodNotFound""#) == true)
        #expect(
            await rig.call(5, "calculator", "same(_:)", "5,6")
                == [failure(5, "invalidArguments", "same(_:) takes 1 argument, got 2")])
        #expect(
            await rig.call(6, "calculator", "same(_:)", "5", #","genericSubstitutions":["Si"]"#)
                == [failure(6, "invalidArguments", "same(_:) takes 0 generic substitutions, got 1")])
        // Names with escapes are valid names.
        #expect(await rig.call(7, "calculat\\u006fr", "s\\u0061me(_:)", "8") == [result(7, "8")])
        #expect(await rig.on { $0.running.isEmpty && $0.load.count == 0 && $0.load.bytes == 0 })
    }

    @Test("hello tells the client the name of its connection and the limits")
    func hello() async {
        let rig = await Rig {
            $0.calls.perConnection = 7
            $0.connections.pingInterval = .milliseconds(1_500)
        }
        let texts = await rig.receive(#"{"type":"hello","payload":{}}"#)
        let name = await rig.on { $0.shard.idempotencyCache.names.text($0.name) }
        #expect(texts.count == 1)
        #expect(texts.first?.contains(#""session":"\#(name)""#) == true)
        #expect(texts.first?.contains(#""callsPerConnection":7"#) == true)
        #expect(texts.first?.contains("1500") == true)
        #expect(await rig.receive(#"{"type":"hello","payload":{}}"#).count == 1)
    }

    @Test("invalid messages are answered, and too many in succession end the connection")
    func malformed() async {
        let rig = await Rig { $0.messages.malformedInARow = 3 }
        for text in ["no JSON", #"{"type":"streamStart","payload":{}}"#] {
            let texts = await rig.receive(text)
            #expect(texts.count == 1 && texts.first?.hasPrefix(#"{"type":"error","#) == true)
        }
        // A valid message in between restarts the count.
        _ = await rig.call(1, "calculator", "nothing()", "")
        for _ in 0..<2 { await rig.receive("[]") }
        #expect(await rig.events == [])
        await rig.receive("{}")
        #expect(await rig.events == ["close 1008 3 malformed messages in a row"])
    }

    @Test("a client of an older version is notified in a response that belongs to no call")
    func malformedOld() async {
        let rig = await Rig(isLegacy: true)
        let texts = await rig.receive("no JSON")
        #expect(texts.count == 1 && texts.first?.contains("00000000-0000-0000-0000-000000000000") == true)
        // An older client also sends unknown kinds of messages.
        #expect(
            await rig.receive(#"{"type":"hello","payload":{}}"#).first?.contains("does not send hello messages") == true
        )
    }

    // MARK: Suspended calls

    @Test("a call that suspends counts until its response, and can be cancelled")
    func running() async {
        let rig = await Rig { $0.calls.perConnection = 2 }
        for (number, name) in [(1, "a"), (2, "b")] {
            #expect(await rig.call(number, "waiter", "hold(_:)", "\"\(name)\"") == [])
        }
        #expect(await rig.on { [$0.load.count, $0.running.count] } == [2, 2])
        let full = await rig.call(3, "waiter", "hold(_:)", "\"c\"")
        #expect(
            full == [
                failure(
                    3, "rateLimited",
                    "2 calls of this connection are in flight, which is the limit (ServerLimits.calls.perConnection)")
            ])
        // A call that runs in place does not count.
        #expect(await rig.call(4, "calculator", "same(_:)", "4") == [result(4, "4")])
        let again = await rig.call(1, "waiter", "hold(_:)", "\"d\"")
        #expect(again.first?.contains("callID '1' is in use by an in-flight call") == true)
        let cancelled = await rig.receive(#"{"type":"cancel","payload":{"callID":"1"}}"#)
        #expect(cancelled == [failure(1, "cancelled", "the call was cancelled by its caller")])
        #expect(await rig.receive(#"{"type":"cancel","payload":{"callID":"1"}}"#) == [])
        await rig.journal.wait(for: "a was cancelled")
        #expect(await rig.on { [$0.load.count, $0.running.count] } == [1, 1])
        rig.journal.record("b go")
        #expect(await rig.waitFor(result(2, "\"went on\"")))
        #expect(await rig.on { [$0.load.count, $0.load.bytes, $0.running.count] } == [0, 0, 0])
    }

    @Test("the bytes of in-flight calls are bounded: their messages and 4 KiB each")
    func callBytes() async {
        let text =
            #"{"type":"invocation","payload":{"callID":"1","actorID":"waiter","targetIdentifier":"hold(_:)","arguments":["a"]}}"#
        let each = text.utf8.count + 4_096
        let rig = await Rig { $0.calls.bytesPerConnection = 2 * each }
        for (number, name) in [(1, "a"), (2, "b")] {
            #expect(await rig.call(number, "waiter", "hold(_:)", "\"\(name)\"") == [])
        }
        #expect(await rig.on { $0.load.bytes } == 2 * each)
        let full = await rig.call(3, "waiter", "hold(_:)", "\"c\"")
        #expect(
            full.first?.contains(
                "have \(2 * each) bytes; the limit is \(2 * each) (ServerLimits.calls.bytesPerConnection)")
                == true)
        for name in ["a", "b"] { rig.journal.record("\(name) go") }
        #expect(await rig.waitFor(result(1, "\"went on\"")))
        #expect(await eventually { await rig.on { $0.load.bytes } == 0 })
        let less = await Rig { $0.calls.bytesPerConnection = each - 1 }
        #expect(await less.call(1, "waiter", "hold(_:)", "\"a\"").first?.contains("have 0 bytes;") == true)
    }

    @Test(
        "a call ends at the client's limit, or at the server's if that is lower",
        arguments: [
            (nil, 60), (2_000, 2), (700_000, 600), (0, 0),
        ] as [(Int?, Int)])
    func timeouts(asked: Int?, seconds: Int) async {
        let rig = await Rig()
        let more = asked.map { #","timeoutMilliseconds":\#($0)"# } ?? ""
        _ = await rig.call(1, "waiter", "hold(_:)", "\"a\"", more)
        if seconds >= 60 {
            await rig.clock.advance(by: .seconds(seconds - 30))
            #expect(await rig.on { $0.running.count } == 1)
            await rig.clock.advance(by: .seconds(30))
        } else {
            await rig.clock.advance(by: .seconds(seconds))
        }
        #expect(await rig.waitFor(failure(1, "timeout", "the call took longer than \(Duration.seconds(seconds))")))
        // A call whose deadline passes in the queue does not start.
        if seconds > 0 { await rig.journal.wait(for: "a was cancelled") }
        #expect(await rig.on { $0.load.count } == 0)
    }

    @Test("in-flight calls are cancelled when the connection closes, and their memory is released")
    func closed() async {
        let rig = await Rig()
        _ = await rig.call(1, "waiter", "hold(_:)", "\"a\"")
        _ = await rig.observe(2)
        #expect(await eventually { await rig.on { $0.streams.count } == 1 })
        #expect(await rig.server.connectionCount == 1)
        await rig.on { connection in
            connection.linkDidClose()
            connection.linkDidClose()
        }
        await rig.journal.wait(for: "a was cancelled")
        #expect(await rig.on { !$0.isOpen && $0.running.isEmpty && $0.streams.isEmpty && $0.load.count == 0 })
        #expect(await rig.on { $0.shard.connections.count } == 0)
        #expect(await rig.on { $0.shard.context.quotas.count(.streams) } == 0)
        #expect(await rig.call(3, "calculator", "same(_:)", "4") == [], "a closed connection answers no call")
    }

    // MARK: Sizes

    @Test("a result over the client's message limit is an error that names the limit's owner", arguments: [0, 1])
    func largeResult(more: Int) async {
        let text = String(repeating: "x", count: 100)
        let whole = result(1, "\"1 \(text)\"")
        for isServers in [false, true] {
            let limit = whole.utf8.count - more
            let rig = await Rig(
                { if isServers { $0.messages.outboundBytes = limit } }, largestMessage: isServers ? .max : limit)
            _ = await rig.call(1, "calculator", "joinLater(_:text:)", "1,\"\(text)\"")
            if more == 0 {
                #expect(await rig.waitFor(whole))
            } else {
                #expect(await rig.waitFor("internal"))
                let texts = await rig.texts
                #expect(
                    texts.first?.contains(isServers ? "the limit is \(limit)" : "the client's limit is \(limit)")
                        == true)
            }
        }
    }

    // MARK: Draining

    @Test("a draining connection sends one goAway; its calls run until it is dismissed, and are rejected afterwards")
    func drained() async {
        let rig = await Rig()
        _ = await rig.observe(1)
        #expect(await rig.waitFor(#""type":"streamData""#))
        let link = rig.link
        await rig.on { connection in
            link.texts = []
            connection.drain(reconnectAfterMilliseconds: 250)
            connection.drain(reconnectAfterMilliseconds: 9)
        }
        let texts = await rig.texts
        #expect(texts.count == 2)
        #expect(texts.first?.contains(#""type":"goAway""#) == true && texts.first?.contains("250") == true)
        #expect(texts.last?.contains(#""reason":"serverDraining""#) == true)
        #expect(await rig.events == ["asked"])
        #expect(await rig.on { $0.isDraining && $0.mayReceiveLateMessages && $0.streams.isEmpty })
        #expect(await rig.call(2, "calculator", "same(_:)", "4") == [result(2, "4")])
        await rig.on { _ in link.texts = [] }
        _ = await rig.observe(3)
        #expect(await rig.waitFor(#""reason":"serverDraining""#))
        #expect(await rig.texts.first?.contains(#""type":"streamStart""#) == true)
        await rig.on { $0.didReceiveDrainPong() }
        #expect(await rig.on { $0.isDraining && !$0.mayReceiveLateMessages })
        #expect(await rig.call(4, "calculator", "same(_:)", "4") == [result(4, "4")])
        await rig.on { $0.dismiss() }
        #expect(
            await rig.call(5, "calculator", "same(_:)", "4") == [
                failure(5, "unavailable", "the server is shutting down")
            ])
    }

    @Test("a client of an older version gets no goAway, but its sent calls are completed")
    func drainedOld() async {
        let rig = await Rig(isLegacy: true)
        await rig.on { connection in
            connection.didReceiveDrainPong()
            connection.drain(reconnectAfterMilliseconds: 250)
        }
        #expect(await rig.texts == [])
        #expect(await rig.events == ["asked"])
        #expect(await rig.on { $0.mayReceiveLateMessages })
        await rig.on { $0.didReceiveDrainPong() }
        #expect(await rig.on { $0.isDraining && !$0.mayReceiveLateMessages })
        let other = await Rig()
        await other.on { $0.didReceiveDrainPong() }
        #expect(await other.on { !$0.isDraining })
        #expect(await other.call(1, "calculator", "same(_:)", "4") == [result(1, "4")])
        await other.on { $0.dismiss() }
        #expect(await other.call(2, "calculator", "same(_:)", "4").first?.contains("unavailable") == true)
    }

    // MARK: Rates

    @Test("calls, streams and hellos over the rate are rejected for a time")
    func rates() async {
        let rig = await Rig { $0.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 2) }
        #expect(await rig.receive(#"{"type":"hello","payload":{}}"#).first?.contains(#""type":"hello""#) == true)
        for number in 1...2 { #expect(await rig.call(number, "calculator", "same(_:)", "4") == [result(number, "4")]) }
        let refused = await rig.call(3, "calculator", "same(_:)", "4")
        #expect(
            refused.first?.contains(
                "too many calls of this connection (ServerLimits.calls.rate.perConnection); try again in ") == true)
        #expect(refused.first?.contains("retryAfterMilliseconds") == true)
        #expect(await rig.observe(4).first?.contains(#""code":"rateLimited""#) == true)
        #expect(await rig.call(5, "nobody", "same(_:)", "4").first?.contains(#""code":"rateLimited""#) == true)
        let hello = await rig.receive(#"{"type":"hello","payload":{}}"#)
        #expect(hello.count == 1 && hello.first?.hasPrefix(#"{"type":"error""#) == true)
        await rig.clock.advance(by: .seconds(1_000))
        #expect(await rig.call(6, "calculator", "same(_:)", "4") == [result(6, "4")])
    }
}
