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

/// Client components without a connection.
@Suite("Client components") struct ClientUnitTests {
    // MARK: Waiting calls

    /// A call of the given size that a caller awaits.
    private func call(_ number: UInt64, bytes: Int = 0) -> PendingCall {
        PendingCall(number: number, name: "n()", message: .encoded([UInt8](repeating: 1, count: bytes)), deadline: 0)
    }

    private func line(calls: Int, bytes: Int = .max) -> OutboundCallQueue {
        var terms = AdvertisedLimits.usual
        terms.callsPerConnection = calls
        terms.callBytesPerConnection = bytes
        return OutboundCallQueue(terms: terms)
    }

    /// Runs `body` with calls that have waiting callers, which are resumed when it returns.
    private func waiting(_ calls: [PendingCall], _ body: () -> Void) async {
        let journal = Journal()
        for call in calls {
            Task {
                _ = try? await withCheckedThrowingContinuation { (waiter: CheckedContinuation<[UInt8]?, any Error>) in
                    call.continuation = waiter
                    journal.record("waits")
                }
            }
        }
        await journal.wait { $0.count == calls.count }
        body()
        for call in calls { call.finish(.success(nil)) }
    }

    @Test("in-flight calls are limited by the server's number, and starting streams count")
    func room() async {
        let calls = (1...4).map { call(UInt64($0)) }
        await waiting(calls) {
            var line = line(calls: 3)
            #expect(line.isEmpty)
            for _ in 0..<2 { line.didSend(calls[0]) }
            #expect(line.underWay == 2 && line.bytes == 2 * AdvertisedLimits.callOverhead)
            #expect(line.hasRoom(for: calls[0], startingStreams: 0))
            #expect(!line.hasRoom(for: calls[0], startingStreams: 1))
            line.didSend(calls[0])
            #expect(!line.hasRoom(for: calls[0], startingStreams: 0))
            for _ in 0..<2 { line.didEnd(calls[0]) }
            // However many streams start, one call may be tried.
            #expect(!line.hasRoom(for: calls[0], startingStreams: 100))
            line.didEnd(calls[0])
            #expect(line.underWay == 0 && line.bytes == 0)
            #expect(line.hasRoom(for: calls[0], startingStreams: 100))
        }
    }

    @Test("bytes count with 4 KiB for each call; a call over the limit is tried alone")
    func bytes() async {
        let calls = [call(1, bytes: 100), call(2, bytes: 101), call(3, bytes: 1_000_000)]
        await waiting(calls) {
            var line = line(calls: 10, bytes: 2 * 4_096 + 200)
            #expect(line.hasRoom(for: calls[2], startingStreams: 0))
            line.didSend(calls[0])
            #expect(line.bytes == 4_196)
            #expect(line.hasRoom(for: calls[0], startingStreams: 0))
            #expect(!line.hasRoom(for: calls[1], startingStreams: 0))
            #expect(line.reason(for: calls[1]).contains("calls.bytesPerConnection = 8392"))
            #expect(line.reason(for: calls[0]).contains("calls.perConnection = 10"))
            #expect(line.reason(for: calls[0]).contains("is reached by 1 call with 4196 bytes in flight"))
            line.removeAll()
            #expect(line.underWay == 0 && line.bytes == 0 && line.terms.callsPerConnection == 10)
        }
    }

    @Test("calls leave the queue in order, without those that have ended meanwhile", arguments: [5, 200, 3_000])
    func order(count: Int) async {
        let calls = (1...count).map { call(UInt64($0)) }
        await waiting(calls) {
            var line = line(calls: 1)
            for call in calls { line.enqueue(call) }
            #expect(!line.isEmpty)
            line.didSend(calls[0])
            #expect(line.next(startingStreams: 0) == nil)
            line.didEnd(calls[0])
            // Every fourth call has ended, with or without notice to the queue.
            for (index, call) in calls.enumerated() where index % 4 == 1 {
                call.finish(.success(nil))
                if index % 8 == 1 { line.didLeave() }
            }
            var left: [UInt64] = []
            while let call = line.next(startingStreams: 0) { left.append(call.number) }
            #expect(left == (1...count).filter { $0 % 4 != 2 }.map { UInt64($0) })
            #expect(line.isEmpty)
            line.didLeave()
            line.enqueue(calls[0])
            #expect(!line.isEmpty)
            #expect(line.next(startingStreams: 0)?.number == 1)
        }
    }

    @Test("a queue retains nothing of calls that have all left")
    func departedCalls() async {
        let calls = (1...100).map { call(UInt64($0)) }
        await waiting(calls) {
            var line = line(calls: 1)
            for call in calls { line.enqueue(call) }
            for call in calls.prefix(51) {
                call.finish(.success(nil))
                line.didLeave()
            }
            var count = 0
            while line.next(startingStreams: 0) != nil { count += 1 }
            #expect(count == 49)
        }
    }

    // MARK: Repeats

    @Test("a repeatable call names its first session, and is not repeated at a server without an idempotency cache")
    func repeats() throws {
        func next(_ call: inout RetryableCall, _ session: String?, at now: UInt64 = 0) -> String? {
            call.next(over: session, at: now).map { String(decoding: $0, as: UTF8.self) }
        }
        let request = CallRequest(arguments: [Array("1".utf8)], generics: ["Si"])
        var call = RetryableCall(number: 7, actorID: "a", target: "n()", request: request, deadline: nil)
        #expect(!call.isSent && !call.isRetryable)
        #expect(call.byteCount == 2 + 5 + 1 + 3 + 256)
        let first = try #require(next(&call, "s.1.x"))
        #expect(first.contains("s.1.x") && first.hasPrefix(#"{"type":"invocation""#))
        #expect(call.isSent && call.isRetryable)
        let again = try #require(next(&call, "s.2.y"))
        #expect(again.contains("s.1.x") && !again.contains("s.2.y") && again.hasPrefix(#"{"type":"repeat""#))
        #expect(next(&call, nil) == nil)
        var unrecorded = RetryableCall(number: 7, actorID: "a", target: "n()", request: request, deadline: 5_000_001)
        let only = try #require(next(&unrecorded, nil))
        #expect(only.contains(#""timeoutMilliseconds":6"#) && !only.contains("session"))
        #expect(unrecorded.isSent && !unrecorded.isRetryable)
        #expect(next(&unrecorded, "s.2.y") == nil && next(&unrecorded, nil) == nil)
        // An expired deadline is sent as one millisecond.
        var late = RetryableCall(number: 7, actorID: "a", target: "n()", request: request, deadline: 5_000_001)
        #expect(next(&late, nil, at: 5_000_001)?.contains(#""timeoutMilliseconds":1"#) == true)
        var exact = RetryableCall(number: 7, actorID: "a", target: "n()", request: request, deadline: 5_000_001)
        #expect(next(&exact, nil, at: 1)?.contains(#""timeoutMilliseconds":5"#) == true)
    }

    // MARK: Oversized messages

    @Test(
        "the advice names the setting of the side that accepts less",
        arguments: [
            (
                100, 50, nil,
                "this client's limit is 50: raise its TrebuchetClient.Options.serverMessageSize, which must equal the server's"
            ),
            (
                100, 50, 60,
                "raise its TrebuchetClient.Options.serverMessageSize, and ServerLimits.messages.inboundBytes at the server (60)"
            ),
            (100, 50, 100, "this client's limit is 50: raise its TrebuchetClient.Options.serverMessageSize"),
            (
                100, 50, 50,
                "the server's limit is 50: raise its ServerLimits.messages.inboundBytes, and TrebuchetClient.Options.serverMessageSize"
            ),
            (100, 100, 60, "the server's limit is 60: raise its ServerLimits.messages.inboundBytes"),
        ] as [(Int, Int, Int?, String)])
    func tooLarge(count: Int, own: Int, advertised: Int?, text: String) {
        let error = MessageSizeErrors.tooLarge("a call of n()", count, own: own, advertised: advertised)
        #expect(error.code == .invalidArguments)
        #expect(error.message.hasPrefix("the message with a call of n() has 100 bytes; "))
        #expect(error.message.contains(text))
        if own == count { #expect(!error.message.contains("serverMessageSize")) }
        if advertised == count { #expect(!error.message.contains("at the server (")) }
    }

    // MARK: Failures

    @Test(
        "a rejection is final unless another attempt could succeed",
        arguments: [
            (401, false, .always), (401, true, .never), (403, false, .always), (403, true, .always),
            (503, false, .never), (404, true, .never),
        ] as [(Int, Bool, ConnectionFailure.RetryPolicy)])
    func statuses(status: Int, hasTokenProvider: Bool, retryPolicy: ConnectionFailure.RetryPolicy) {
        let error = TransportError(.handshake, "no", cause: UnexpectedHTTPStatus(status))
        let failure = ConnectionFailure(error, hasTokenProvider: hasTokenProvider)
        #expect(failure.retryPolicy == retryPolicy)
        #expect(failure.error == error)
    }

    @Test(
        "certificate and handshake errors are final at first, network and token errors never",
        arguments: [
            (.tls, .atFirst), (.handshake, .atFirst), (.refused, .never), (.timedOut, .never), (.closed, .never),
            (.system, .never), (.token, .never),
        ] as [(TransportError.Code, ConnectionFailure.RetryPolicy)])
    func kinds(code: TransportError.Code, retryPolicy: ConnectionFailure.RetryPolicy) {
        #expect(ConnectionFailure(TransportError(code, "no"), hasTokenProvider: true).retryPolicy == retryPolicy)
    }

    @Test("any other transport error is reported as the cause, and the attempt is repeated")
    func otherErrors() {
        struct NoRadio: Error {}
        let failure = ConnectionFailure(NoRadio(), hasTokenProvider: true)
        #expect(failure.retryPolicy == .never && failure.error.code == .system)
        #expect(failure.error.cause is NoRadio && failure.error.message.contains("NoRadio"))
    }

    // MARK: Exported actors

    @Test("a client answers for the actors that it has passed, and no others, under one secret name")
    func handed() {
        let handed = ExportedActors()
        let (one, other) = (ActorName("one"), ActorName("other"))
        #expect(handed.identity == nil && !handed.contains(one))
        handed.insert(one)
        let identity = handed.identity
        #expect(identity?.utf8.count == 32 && handed.contains(one) && !handed.contains(other))
        handed.insert(other)
        #expect(handed.identity == identity && handed.contains(other))
        handed.remove(one)
        #expect(!handed.contains(one) && handed.contains(other))
        let second = ExportedActors()
        second.insert(one)
        #expect(second.identity != identity)
    }
}
