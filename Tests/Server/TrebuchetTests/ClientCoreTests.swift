import Networking
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A client's calls and streams over recording links, with a clock that the test advances.
@Suite(.timeLimit(.minutes(5)), .serialized) struct ClientCoreTests {
    /// Records the messages sent.
    final class Link: ClientLink, Sendable {
        let callSession: String?
        private let messages = Mutex<[String]>([])
        init(callSession: String? = nil) { self.callSession = callSession }
        func send(_ message: [UInt8]) { messages.withLock { $0.append(String(decoding: message, as: UTF8.self)) } }
        func close() { messages.withLock { $0.append("closed") } }
        var all: [String] { messages.withLock { $0 } }
        /// The recorded calls, by their arguments.
        var calls: [String] {
            all.compactMap { text in
                text.firstRange(of: "\"arguments\":[").map { String(text[$0.upperBound...].prefix { $0 != "]" }) }
            }
        }
    }

    final class Rig: Sendable {
        /// A dedicated reactor, so that it has no other timers.
        let reactor: Reactor
        let core: ClientCore

        init(_ change: (inout TrebuchetClient.Options) -> Void = { _ in }) {
            var options = TrebuchetClient.Options()
            change(&options)
            reactor = try! Reactor(name: "core")
            core = ClientCore(loop: reactor, options: options, peerName: "ws://there:1", addressIdentifiesServer: true)
        }

        func on<Result: Sendable>(_ body: @escaping @Sendable (ClientCore) -> Result) async -> Result {
            let core = core
            return await reactor.perform { body(core) }
        }

        func activateLink(_ link: Link, number: Int) async { await on { $0.connection(uses: link, number: number) } }

        func receive(_ text: String, over number: Int = 1) async {
            await on { core in Array(text.utf8).withUnsafeBytes { core.receive($0, over: number) } }
        }

        func answer(_ call: Int, _ result: String = "1", over number: Int = 1) async {
            await receive(#"{"type":"response","payload":{"callID":"\#(call)","result":\#(result)}}"#, over: number)
        }

        func terms(_ terms: String) async {
            await receive(#"{"type":"hello","payload":{"session":"a.b.c","limits":{\#(terms)}}}"#)
        }

        func turn(by duration: Duration) async {
            reactor.advance(by: duration.nanoseconds)
            await reactor.perform {}
            await reactor.perform {}
        }

        /// Calls a method with one argument.
        func call(_ argument: String, isIdempotent: Bool = false) -> Task<String, any Error> {
            let core = core
            return Task {
                let request = CallRequest(arguments: [Array(argument.utf8)], generics: [])
                let result = try await core.call(actorID: "a", target: "n()", request, isIdempotent: isIdempotent)
                return result.map { String(decoding: $0, as: UTF8.self) } ?? "nothing"
            }
        }
    }

    func failure(_ call: Task<String, any Error>) async -> TrebuchetError? {
        do {
            _ = try await call.value
            return nil
        } catch {
            return error as? TrebuchetError
        }
    }

    @Test("a call completes with the response of its number; other responses are ignored")
    func answers() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        #expect(link.all == [#"{"type":"hello","payload":{}}"#])
        let call = rig.call("5")
        #expect(await eventually { link.calls == ["5"] })
        #expect(
            link.all.last
                == #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"n()","arguments":[5]}}"#
        )
        for other in ["2", "x", "", "-1"] {
            await rig.receive(#"{"type":"response","payload":{"callID":"\#(other)","result":9}}"#)
        }
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 1)
        await rig.answer(1, "25")
        #expect(try await call.value == "25")
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 0)
        #expect(await rig.on { $0.outboundCalls.underWay } == 0)
        let empty = rig.call("6")
        #expect(await eventually { link.calls.count == 2 })
        await rig.receive(#"{"type":"response","payload":{"callID":"2"}}"#)
        #expect(try await empty.value == "nothing")
    }

    @Test("an error response arrives completely")
    func errors() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        let call = rig.call("5")
        #expect(await eventually { link.calls == ["5"] })
        await rig.receive(
            #"{"type":"response","payload":{"callID":"1","error":{"code":"application","message":"no","type":"T","data":[1],"#
                + #""retryAfterMilliseconds":250}}}"#)
        let error = await failure(call)
        #expect(
            error
                == TrebuchetError(
                    .application, "no", type: "T", data: Array("[1]".utf8), retryAfter: .milliseconds(250)))
        let plain = rig.call("6")
        #expect(await eventually { link.calls.count == 2 })
        await rig.receive(#"{"type":"response","payload":{"callID":"2","error":{"code":"internal","message":"no"}}}"#)
        #expect(await failure(plain) == TrebuchetError(.internal, "no"))
    }

    @Test("without a connection or an attempt, calls and streams fail with advice")
    func notConnected() async throws {
        let rig = Rig()
        let error = await failure(rig.call("1"))
        #expect(error == TrebuchetError(.unavailable, "there is no connection to ws://there:1; call connect() first"))
        let stream = rig.core.observe(StreamTarget(actorID: "a", name: "observeState"))
        #expect(
            await eventually { stream.relay.currentValue.outcome == .failed(error ?? TrebuchetError(.internal, "")) })
        await rig.core.connection.close()
        let closed = await failure(rig.call("1"))
        #expect(closed?.message == "there is no connection to ws://there:1; the client was closed")
    }

    @Test("the number of in-flight calls is bounded")
    func callsInFlight() async throws {
        let (rig, link) = (Rig { $0.callsInFlight = 2 }, Link())
        await rig.activateLink(link, number: 1)
        let first = rig.call("1")
        #expect(await eventually { link.calls == ["1"] })
        let second = rig.call("2")
        #expect(await eventually { link.calls == ["1", "2"] })
        let third = await failure(rig.call("3"))
        #expect(third?.code == .rateLimited)
        #expect(
            third?.message
                == "2 calls of this client are in flight, which is the limit (TrebuchetClient.Options.callsInFlight)")
        await rig.answer(1)
        #expect(try await first.value == "1")
        let fourth = rig.call("4")
        #expect(await eventually { link.calls == ["1", "2", "4"] })
        for (call, number) in [(second, 2), (fourth, 4)] {
            await rig.answer(number)
            _ = try await call.value
        }
    }

    @Test(
        "a message is limited by the client's setting and by the server's advertised limit",
        arguments: [
            false, true,
        ])
    func sizes(isAdvertised: Bool) async throws {
        // The size of a call with a four-digit argument, without the argument.
        let count =
            #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"n()","arguments":[]}}"#
            .count + 4
        let (rig, link) = (Rig { $0.serverMessageSize = isAdvertised ? 1_000 : count }, Link())
        await rig.activateLink(link, number: 1)
        if isAdvertised { await rig.terms("\"messageSize\":\(count)") }
        let good = rig.call("1234")
        #expect(await eventually { link.calls == ["1234"] })
        await rig.answer(1)
        _ = try await good.value
        let error = await failure(rig.call("12345"))
        #expect(error?.code == .invalidArguments)
        #expect(error?.message.hasPrefix("the message with n() has \(count + 1) bytes; ") == true)
        #expect(
            error?.message.contains(isAdvertised ? "the server's limit is \(count)" : "this client's limit is \(count)")
                == true)
        #expect(await rig.on { $0.callsUnderWay(number: 1) + $0.callsUnderWay(number: 0) } == 0)
        // A repeatable call is first checked by its arguments alone, then by its whole size.
        let repeated = await failure(rig.call(String(repeating: "1", count: count), isIdempotent: true))
        #expect(repeated?.code == .invalidArguments)
        let large = await failure(rig.call(String(repeating: "1", count: 1_001), isIdempotent: true))
        #expect(large?.code == .invalidArguments)
        #expect(link.calls == ["1234"])
        // Another server may accept more.
        let other = Link()
        await rig.activateLink(other, number: 2)
        if isAdvertised {
            let call = rig.call("12345")
            #expect(await eventually { other.calls == ["12345"] })
            await rig.answer(5, over: 2)
            _ = try await call.value
        }
    }

    @Test("calls beyond the server's limit are queued, and sent in order as responses arrive")
    func waiting() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        await rig.terms("\"callsPerConnection\":2")
        var calls: [Task<String, any Error>] = []
        for number in 1...5 {
            calls.append(rig.call("\(number)"))
            #expect(
                await eventually {
                    await rig.on { $0.callsUnderWay(number: 0) + $0.callsUnderWay(number: 1) } == number
                })
        }
        #expect(link.calls == ["1", "2"])
        #expect(await rig.on { $0.callsUnderWay(number: 0) } == 3)
        await rig.answer(2)
        #expect(link.calls == ["1", "2", "3"])
        calls[3].cancel()
        await #expect(throws: CancellationError.self) { try await calls[3].value }
        await rig.answer(1)
        #expect(link.calls == ["1", "2", "3", "5"])
        // A call that was not sent needs no cancel message; a sent call gets one and makes room.
        #expect(!link.all.contains { $0.contains("cancel") })
        calls[2].cancel()
        await #expect(throws: CancellationError.self) { try await calls[2].value }
        #expect(link.all.last == #"{"type":"cancel","payload":{"callID":"3"}}"#)
        #expect(await rig.on { $0.outboundCalls.underWay } == 1)
        await rig.answer(5)
        for index in [0, 1, 4] { _ = try await calls[index].value }
    }

    @Test("a call ends at its time limit with the reason for its wait, and other calls continue")
    func timeouts() async throws {
        let (rig, link) = (Rig { $0.callTimeout = .seconds(30) }, Link())
        await rig.activateLink(link, number: 1)
        await rig.terms("\"callsPerConnection\":1")
        let first = rig.call("1")
        #expect(await eventually { link.calls == ["1"] })
        let second = rig.call("2")
        #expect(await eventually { await rig.on { $0.callsUnderWay(number: 0) } == 1 })
        await rig.turn(by: .seconds(15))
        let third = rig.call("3")
        #expect(await eventually { await rig.on { $0.callsUnderWay(number: 0) } == 2 })
        #expect(await rig.on { ($0.loop as! Reactor).liveTimerCount } == 1)
        await rig.turn(by: .seconds(15))
        #expect(await failure(first) == TrebuchetError(.timeout, "n() had no response before its deadline"))
        #expect(link.all.contains(#"{"type":"cancel","payload":{"callID":"1"}}"#))
        let late = await failure(second)
        #expect(late?.code == .timeout)
        #expect(late?.message.hasPrefix("n() was not sent before its deadline: ") == true)
        #expect(await eventually { link.calls == ["1", "3"] })
        await rig.turn(by: .seconds(5))
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 1)
        await rig.turn(by: .seconds(15))
        #expect(await failure(third)?.code == .timeout)
        #expect(await rig.on { ($0.loop as! Reactor).liveTimerCount } == 0)
    }

    @Test("an expired deadline fails at once; a later one is sent in milliseconds, rounded up")
    func deadlines() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        let now = MonotonicClock.now
        for passed in [now, 1] as [UInt64] {
            let error = await Deadline.$current.withValue(passed) { await failure(rig.call("1")) }
            #expect(error == TrebuchetError(.timeout, "the deadline had passed before n() was called"))
        }
        #expect(link.calls == [])
        let call = Deadline.$current.withValue(now + 60_000_000_000) { rig.call("2") }
        #expect(await eventually { link.calls.count == 1 })
        let digits = link.all.last?.firstRange(of: "\"timeoutMilliseconds\":").map { range in
            link.all.last?[range.upperBound...].prefix { $0.isNumber } ?? ""
        }
        let milliseconds = try #require(digits.flatMap { Int($0) })
        #expect((1...60_000).contains(milliseconds))
        await rig.answer(3)
        _ = try await call.value
    }

    @Test("calls sent over a broken connection have an unknown outcome; idempotent calls are repeated")
    func broken() async throws {
        let (rig, link) = (Rig(), Link(callSession: "s.1.x"))
        await rig.activateLink(link, number: 1)
        let call = rig.call("1")
        #expect(await eventually { link.calls == ["1"] })
        await rig.on { $0.connectionLost(number: 2, TransportError(.closed, "another")) }
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 1)
        await rig.on { $0.connectionLost(number: 1, TransportError(.closed, "cut")) }
        #expect(
            await failure(call)
                == TrebuchetError(.unknownOutcome, "n() was sent but has no response; it may have been executed: cut"))
        #expect(await rig.on { $0.outboundCalls.underWay == 0 && $0.link == nil })
        let next = await failure(rig.call("2"))
        #expect(next?.code == .unavailable)
    }

    @Test("when a server closes the connection over a message size, the largest in-flight call fails")
    func refused() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        let small = rig.call("1")
        #expect(await eventually { link.calls.count == 1 })
        let large = rig.call("2222222222")
        #expect(await eventually { link.calls.count == 2 })
        await rig.on { $0.connectionLost(number: 1, TransportError(.closed, "1009", cause: MessageTooLarge())) }
        #expect(await failure(large)?.code == .invalidArguments)
        #expect(await failure(large)?.message.contains("so the server closed the connection") == true)
        #expect(await failure(small)?.code == .unknownOutcome)
    }
}
