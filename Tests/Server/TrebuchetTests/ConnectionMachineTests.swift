import Networking
import Testing
import Transports
import TrebuchetTesting
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Suite struct ConnectionMachineTests {
    typealias Input = ConnectionMachine.Input
    typealias Effect = ConnectionMachine.Effect
    typealias State = TrebuchetClient.ConnectionState

    static let refused = TransportError(.refused, "refused")
    static let forbidden = TransportError(.handshake, "403")
    static let lost = TransportError(.closed, "lost")
    static let closed = TransportError(.closed, "the client was closed")
    static let none = TransportError(.closed, "there is no connection")
    static let failure = ConnectionFailure(refused)
    static let finalFailure = ConnectionFailure(forbidden, .always)

    /// Every input: with the numbers that the situations use, and with an unknown number.
    static let inputs: [Input] =
        [.connectRequested, .disconnectRequested, .closeRequested]
        + [1, 2, 9].flatMap { number -> [Input] in
            [
                .connected(number), .attemptFailed(number, failure), .attemptFailed(number, finalFailure),
                .connectionLost(number, lost), .goAway(number, reconnectAfter: .seconds(3)), .retryTimerFired(number),
            ]
        }

    struct Situation: CustomTestStringConvertible {
        let testDescription: String
        /// The inputs that lead to the state, all at time 0 and with half of each jitter.
        let history: [Input]
        var policy = ReconnectPolicy()
        let state: State
        /// The effects after 20 seconds with a quarter of each jitter. Every other input has no effect.
        let answers: [(Input, [Effect])]
    }

    static let atOnce: [Input] = [.connectRequested, .connected(1)]

    static let situations: [Situation] = [
        Situation(
            testDescription: "disconnected, from the beginning", history: [], state: .disconnected(nil),
            answers: [
                (.connectRequested, [.startConnecting(1), .notify(.connecting(attempt: 1, after: nil))]),
                (.closeRequested, [.notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "disconnected, because the first attempt failed",
            history: [.connectRequested, .attemptFailed(1, failure)], state: .disconnected(refused),
            answers: [
                (.connectRequested, [.startConnecting(2), .notify(.connecting(attempt: 1, after: nil))]),
                (.closeRequested, [.notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "connecting for the first time", history: [.connectRequested],
            state: .connecting(attempt: 1, after: nil),
            answers: [
                (.connected(1), [.activateLink(1), .notify(.connected), .releaseWaiting]),
                (.attemptFailed(1, failure), [.notify(.disconnected(refused)), .failWaiting(refused)]),
                (.attemptFailed(1, finalFailure), [.notify(.disconnected(forbidden)), .failWaiting(forbidden)]),
                (.connectionLost(1, lost), [.notify(.disconnected(lost)), .failWaiting(lost)]),
                (.disconnectRequested, [.abandon(1), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.abandon(1), .notify(.closed), .failWaiting(closed)]),
                (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "connected", history: atOnce, state: .connected,
            answers: [
                (.connectRequested, [.releaseWaiting]),
                (
                    .connectionLost(1, lost),
                    [.scheduleRetry(2, after: .milliseconds(50)), .notify(.connecting(attempt: 1, after: lost))]
                ),
                (
                    .goAway(1, reconnectAfter: .seconds(3)),
                    [.scheduleRetry(2, after: .seconds(3)), .notify(.draining)]
                ),
                (.disconnectRequested, [.drop(1), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.drop(1), .notify(.closed), .failWaiting(closed)]),
                (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "waiting for the second attempt",
            history: atOnce + [.connectionLost(1, lost)], state: .connecting(attempt: 2, after: lost),
            answers: [
                (.retryTimerFired(2), [.startConnecting(2)]),
                (.connectRequested, [.cancelRetry, .startConnecting(2)]),
                (.disconnectRequested, [.cancelRetry, .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.cancelRetry, .notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "connecting again",
            history: atOnce + [.connectionLost(1, lost), .retryTimerFired(2)],
            state: .connecting(attempt: 2, after: lost),
            answers: [
                (.connected(2), [.activateLink(2), .notify(.connected), .releaseWaiting]),
                (
                    .attemptFailed(2, failure),
                    [.scheduleRetry(3, after: .milliseconds(100)), .notify(.connecting(attempt: 3, after: refused))]
                ),
                (.attemptFailed(2, finalFailure), [.notify(.disconnected(forbidden)), .failWaiting(forbidden)]),
                (
                    .connectionLost(2, lost),
                    [.scheduleRetry(3, after: .milliseconds(100)), .notify(.connecting(attempt: 3, after: lost))]
                ),
                (.disconnectRequested, [.abandon(2), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.abandon(2), .notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "draining, before the time that the server named",
            history: atOnce + [.goAway(1, reconnectAfter: .seconds(3))], state: .draining,
            answers: [
                (.connectRequested, [.releaseWaiting]),
                (.retryTimerFired(2), [.startConnecting(2)]),
                (.connectionLost(1, lost), [.notify(.connecting(attempt: 2, after: lost))]),
                (.disconnectRequested, [.cancelRetry, .drop(1), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.cancelRetry, .drop(1), .notify(.closed), .failWaiting(closed)]),
                (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "draining, with an attempt under way",
            history: atOnce + [.goAway(1, reconnectAfter: .seconds(3)), .retryTimerFired(2)], state: .draining,
            answers: [
                (.connectRequested, [.releaseWaiting]),
                (.connected(2), [.activateLink(2), .drop(1), .notify(.connected), .releaseWaiting]),
                (.attemptFailed(2, failure), [.scheduleRetry(3, after: .milliseconds(100))]),
                (.attemptFailed(2, finalFailure), []),
                (.connectionLost(1, lost), [.notify(.connecting(attempt: 2, after: lost))]),
                (.connectionLost(2, lost), [.scheduleRetry(3, after: .milliseconds(100))]),
                (.disconnectRequested, [.abandon(2), .drop(1), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.abandon(2), .drop(1), .notify(.closed), .failWaiting(closed)]),
                (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "draining, and nothing follows",
            history: atOnce + [.goAway(1, reconnectAfter: .seconds(3))], policy: .never, state: .draining,
            answers: [
                (.connectRequested, [.releaseWaiting]),
                (.connectionLost(1, lost), [.notify(.disconnected(lost)), .failWaiting(lost)]),
                (.disconnectRequested, [.drop(1), .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.drop(1), .notify(.closed), .failWaiting(closed)]),
                (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "the server has gone before the time that it named",
            history: atOnce + [.goAway(1, reconnectAfter: .seconds(3)), .connectionLost(1, lost)],
            state: .connecting(attempt: 2, after: lost),
            answers: [
                // The user cannot shorten the wait: .connectAsked has no effect.
                (.retryTimerFired(2), [.startConnecting(2)]),
                (.disconnectRequested, [.cancelRetry, .notify(.disconnected(nil)), .failWaiting(none)]),
                (.closeRequested, [.cancelRetry, .notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "disconnected, because the user wanted so", history: atOnce + [.disconnectRequested],
            state: .disconnected(nil),
            answers: [
                (.connectRequested, [.startConnecting(2), .notify(.connecting(attempt: 1, after: nil))]),
                (.closeRequested, [.notify(.closed), .failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
        Situation(
            testDescription: "closed", history: atOnce + [.closeRequested], state: .closed,
            answers: [
                (.connectRequested, [.failWaiting(closed)]),
                (.connected(1), [.drop(1)]), (.connected(2), [.drop(2)]), (.connected(9), [.drop(9)]),
            ]),
    ]

    @Test("each input has its specified effects in each state", arguments: situations)
    func table(_ situation: Situation) {
        var machine = ConnectionMachine(policy: situation.policy)
        for input in situation.history { _ = machine.handle(input, at: 0, random: 0.5) }
        #expect(machine.state == situation.state)
        for input in Self.inputs {
            var copy = machine
            let effects = copy.handle(input, at: 20_000_000_000, random: 0.25)
            #expect(effects == situation.answers.first { $0.0 == input }?.1 ?? [], "\(input)")
            let notified = effects.compactMap { if case .notify(let state) = $0 { state } else { nil } }
            #expect(copy.state == notified.last ?? situation.state, "\(input)")
        }
        #expect(situation.answers.allSatisfy { answer in Self.inputs.contains(answer.0) })
    }

    // MARK: Delays

    /// The delays of a machine whose server is unreachable from the start, with maximal jitter.
    private func delays(_ policy: ReconnectPolicy, count: Int) -> [Duration] {
        var policy = policy
        policy.retriesFirstConnection = true
        var machine = ConnectionMachine(policy: policy)
        _ = machine.handle(.connectRequested, at: 0, random: 1)
        return (1...count).compactMap { number in
            let effects = machine.handle(.attemptFailed(number, Self.failure), at: 0, random: 1)
            _ = machine.handle(.retryTimerFired(number + 1), at: 0, random: 1)
            guard case .scheduleRetry(_, let delay)? = effects.first else { return nil }
            return delay
        }
    }

    @Test("the maximum wait doubles from 0.2 to 10 seconds")
    func doubling() {
        let expected: [Double] = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
        #expect(delays(ReconnectPolicy(), count: 8) == expected.map { .milliseconds(Int($0 * 1000)) })
        #expect(delays(ReconnectPolicy(), count: 100).last == .seconds(10))
    }

    @Test("the wait is a random fraction of the maximum", arguments: [(0.0, 0), (0.5, 400), (0.25, 200)])
    func jitter(random: Double, milliseconds: Int) {
        let delay = ReconnectPolicy().delay(afterFailures: 3, random: random)
        #expect(delay == .milliseconds(milliseconds))
    }

    @Test("a client gives up after the number of attempts in its policy", arguments: [1, 2, 5])
    func maximumAttempts(limit: Int) {
        var policy = ReconnectPolicy()
        policy.maximumAttempts = limit
        #expect(delays(policy, count: 10).count == limit - 1)
    }

    @Test("without reconnection a lost connection stays closed until the user connects")
    func never() {
        var machine = ConnectionMachine(policy: .never)
        for input in Self.atOnce { _ = machine.handle(input, at: 0, random: 0) }
        let effects = machine.handle(.connectionLost(1, Self.lost), at: 60_000_000_000, random: 0)
        #expect(effects == [.notify(.disconnected(Self.lost)), .failWaiting(Self.lost)])
        #expect(machine.handle(.connectRequested, at: 0, random: 0).first == .startConnecting(2))
    }

    @Test(
        "the failure count restarts after a connection that lasted",
        arguments: [(9_999_999_999, 3, 400), (10_000_000_000, 1, 200)] as [(UInt64, Int, Int)])
    func reset(lasted: UInt64, attempt: Int, milliseconds: Int) {
        var policy = ReconnectPolicy()
        policy.retriesFirstConnection = true
        var machine = ConnectionMachine(policy: policy)
        let start: UInt64 = 5
        // Two attempts and one failure before there is a connection.
        let history: [Input] = [
            .connectRequested, .attemptFailed(1, Self.failure), .retryTimerFired(2), .connected(2),
        ]
        for input in history { _ = machine.handle(input, at: start, random: 1) }
        let next = machine.handle(.connectionLost(2, Self.lost), at: start + lasted, random: 1)
        let state = State.connecting(attempt: attempt, after: Self.lost)
        #expect(next == [.scheduleRetry(3, after: .milliseconds(milliseconds)), .notify(state)])
    }

    @Test(
        "a client honors the server's delay up to 60 seconds, and backs off when a new connection is drained at once",
        arguments: [
            (.seconds(30), 20, .seconds(30)), (.seconds(3600), 20, .seconds(60)), (.zero, 20, .zero),
            (.zero, 1, .milliseconds(200)), (.milliseconds(10), 1, .milliseconds(200)), (.seconds(1), 1, .seconds(1)),
            (.seconds(-1), 20, .zero),
        ] as [(Duration, UInt64, Duration)])
    func goAway(asked: Duration, lastedSeconds: UInt64, delay: Duration) {
        var machine = ConnectionMachine()
        for input in Self.atOnce { _ = machine.handle(input, at: 0, random: 0) }
        let effects = machine.handle(
            .goAway(1, reconnectAfter: asked), at: lastedSeconds * 1_000_000_000, random: 1)
        #expect(effects == [.scheduleRetry(2, after: delay), .notify(.draining)])
    }

    @Test("the rejection by a new server is reported when the old connection closes")
    func refusedWhileDraining() {
        var machine = ConnectionMachine()
        let history: [Input] =
            Self.atOnce + [
                .goAway(1, reconnectAfter: .zero), .retryTimerFired(2), .attemptFailed(2, Self.finalFailure),
            ]
        for input in history { _ = machine.handle(input, at: 0, random: 0) }
        #expect(machine.state == .draining)
        let effects = machine.handle(.connectionLost(1, Self.lost), at: 0, random: 0)
        #expect(effects == [.notify(.disconnected(Self.forbidden)), .failWaiting(Self.forbidden)])
    }

    // MARK: Which failures are final

    @Test(
        "another attempt is made unless the server would give the same response",
        arguments: [
            (TransportError(.refused, ""), .never, .never), (TransportError(.timedOut, ""), .never, .never),
            (TransportError(.addressInvalid, ""), .never, .never), (TransportError(.tls, ""), .atFirst, .atFirst),
            (TransportError(.handshake, "no Trebuchet server"), .atFirst, .atFirst),
            (TransportError(.handshake, "", cause: SubprotocolNotSupported("trebuchet.v3")), .always, .always),
            (TransportError(.handshake, "", cause: UnexpectedHTTPStatus(401)), .always, .never),
            (TransportError(.handshake, "", cause: UnexpectedHTTPStatus(403)), .always, .always),
            (TransportError(.handshake, "", cause: UnexpectedHTTPStatus(503)), .never, .never),
        ] as [(TransportError, ConnectionFailure.RetryPolicy, ConnectionFailure.RetryPolicy)])
    func retryPolicy(error: TransportError, without: ConnectionFailure.RetryPolicy, with: ConnectionFailure.RetryPolicy)
    {
        #expect(ConnectionFailure(error, hasTokenProvider: false).retryPolicy == without)
        #expect(ConnectionFailure(error, hasTokenProvider: true).retryPolicy == with)
    }

    @Test(
        "a failed handshake is final only for the first attempt: a client that was connected tries again",
        arguments: [false, true])
    func handshakeOfAnother(retriesFirstConnection: Bool) {
        let failure = ConnectionFailure(
            TransportError(.handshake, "the relay is there, the server behind it is not"), hasTokenProvider: false)
        var policy = ReconnectPolicy()
        policy.retriesFirstConnection = retriesFirstConnection
        var machine = ConnectionMachine(policy: policy)
        _ = machine.handle(.connectRequested, at: 0, random: 0)
        _ = machine.handle(.attemptFailed(1, failure), at: 0, random: 0)
        #expect(machine.state == .disconnected(failure.error))
        for input in [.connectRequested, .connected(2), .connectionLost(2, Self.lost)] as [Input] {
            _ = machine.handle(input, at: 0, random: 0)
        }
        for attempt in 3...6 {
            _ = machine.handle(.retryTimerFired(attempt), at: 0, random: 0)
            _ = machine.handle(.attemptFailed(attempt, failure), at: 0, random: 0)
            #expect(machine.state == .connecting(attempt: attempt, after: failure.error))
        }
        _ = machine.handle(.retryTimerFired(7), at: 0, random: 0)
        _ = machine.handle(.attemptFailed(7, Self.finalFailure), at: 0, random: 0)
        #expect(machine.state == .disconnected(Self.forbidden))
    }

    // MARK: Several addresses

    @Test("an attempt at each of several addresses counts as one failure, also before the first connection")
    func rounds() {
        var machine = ConnectionMachine(addresses: 3)
        #expect(machine.handle(.connectRequested, at: 0, random: 1).first == .startConnecting(1))
        for number in 1...2 {
            let effects = machine.handle(.attemptFailed(number, Self.failure), at: 0, random: 1)
            #expect(effects.first == .scheduleRetry(number + 1, after: .milliseconds(200)))
            #expect(
                machine.handle(.retryTimerFired(number + 1), at: 0, random: 1).first == .startConnecting(number + 1))
        }
        let effects = machine.handle(.attemptFailed(3, Self.failure), at: 0, random: 1)
        #expect(effects == [.notify(.disconnected(Self.refused)), .failWaiting(Self.refused)])
    }

    @Test("the client gives up when all addresses reject it, not when one does")
    func refusals() {
        var machine = ConnectionMachine(addresses: 2)
        _ = machine.handle(.connectRequested, at: 0, random: 1)
        _ = machine.handle(.attemptFailed(1, Self.finalFailure), at: 0, random: 1)
        _ = machine.handle(.retryTimerFired(2), at: 0, random: 1)
        #expect(machine.handle(.connected(2), at: 0, random: 1).first == .activateLink(2))
        _ = machine.handle(.connectionLost(2, Self.lost), at: 0, random: 1)
        for (number, failure) in [(3, Self.finalFailure), (4, Self.failure), (5, Self.finalFailure)] {
            _ = machine.handle(.retryTimerFired(number), at: 0, random: 1)
            let effects = machine.handle(.attemptFailed(number, failure), at: 0, random: 1)
            #expect(effects.contains { if case .scheduleRetry(number + 1, _) = $0 { true } else { false } })
        }
        _ = machine.handle(.retryTimerFired(6), at: 0, random: 1)
        let effects = machine.handle(.attemptFailed(6, Self.finalFailure), at: 0, random: 1)
        #expect(effects == [.notify(.disconnected(Self.forbidden)), .failWaiting(Self.forbidden)])
    }

    @Test("the wait doubles with each round through all addresses")
    func waits() {
        var machine = ConnectionMachine(addresses: 2)
        for input in Self.atOnce { _ = machine.handle(input, at: 0, random: 1) }
        _ = machine.handle(.connectionLost(1, Self.lost), at: 0, random: 1)
        var waits: [Duration] = []
        for number in 2...6 {
            _ = machine.handle(.retryTimerFired(number), at: 0, random: 1)
            for effect in machine.handle(.attemptFailed(number, Self.failure), at: 0, random: 1) {
                if case .scheduleRetry(_, let wait) = effect { waits.append(wait) }
            }
        }
        #expect(waits == [200, 400, 400, 800, 800].map { .milliseconds($0) })
    }

    @Test("a client of a draining server reconnects without delay when it has other addresses")
    func sentAway() {
        for (addresses, wait) in [(1, Duration.seconds(3)), (2, .milliseconds(200))] {
            var machine = ConnectionMachine(addresses: addresses)
            for input in Self.atOnce { _ = machine.handle(input, at: 0, random: 1) }
            let effects = machine.handle(.goAway(1, reconnectAfter: .seconds(3)), at: 0, random: 1)
            #expect(effects.first == .scheduleRetry(2, after: wait))
        }
    }
}
