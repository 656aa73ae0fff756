import Networking
import Platform
import Testing

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Executes the machine's effects as its host does, and checks their consistency.
private struct RandomRun {
    typealias Input = ConnectionMachine.Input

    var machine: ConnectionMachine
    var random: RandomSource
    var now: UInt64 = 0
    var attempt: Int?
    var timer: Int?
    var used: Int?
    /// The open connections: the current one and one that is replaced.
    var connections: Set<Int> = []
    /// Closed connections and finished attempts, which may still produce inputs.
    var stale: [Int] = [999]
    var reportedState = TrebuchetClient.ConnectionState.disconnected(nil)
    var isClosed = false
    /// Whether the user currently wants no connection.
    var isUnwanted = false

    init(seed: UInt64) {
        random = RandomSource(seed: seed)
        var policy = ReconnectPolicy()
        policy.retriesFirstConnection = Bool.random(using: &random)
        policy.maximumAttempts = [nil, nil, 0, 1, 4].randomElement(using: &random)!
        machine = ConnectionMachine(policy: policy)
    }

    mutating func tell(_ input: Input) {
        now += UInt64.random(in: 0...8_000_000_000, using: &random)
        for effect in machine.handle(input, at: now, random: .random(in: 0..<1, using: &random)) { obey(effect) }
        #expect(reportedState == machine.state)
        let isDraining = machine.state == .draining
        #expect(attempt == nil || timer == nil)
        #expect(connections.count <= 1)
        #expect(connections.isEmpty || attempt == nil && timer == nil || isDraining)
        let isConnected = machine.state == .connected || isDraining
        #expect(isConnected == !connections.isEmpty)
        if isConnected { #expect(connections == [used]) }
        if isClosed { #expect(attempt == nil && timer == nil && connections.isEmpty) }
    }

    private mutating func obey(_ effect: ConnectionMachine.Effect) {
        switch effect {
        case .startConnecting(let number):
            #expect(attempt == nil, "one attempt at a time")
            #expect(!isClosed, "no attempt after close()")
            attempt = number
            // Its timer ended early; the number now belongs to the attempt.
            stale.removeAll { $0 == number }
        case .abandon(let number):
            #expect(attempt == number)
            attempt = nil
            stale.append(number)
        case .scheduleRetry(let number, let delay):
            #expect(timer == nil)
            #expect(!isClosed)
            #expect(delay >= .zero && delay <= .seconds(60))
            timer = number
        case .cancelRetry:
            #expect(timer != nil)
            stale.append(timer ?? 0)
            timer = nil
        case .activateLink(let number):
            #expect(connections.contains(number))
            used = number
        case .drop(let number):
            #expect(number != used || isClosed || isUnwanted)
            if isUnwanted { used = nil }
            connections.remove(number)
            stale.append(number)
        case .notify(let state):
            #expect(state != reportedState, "only changes are reported")
            reportedState = state
        case .releaseWaiting: #expect(!connections.isEmpty)
        case .failWaiting: #expect(connections.isEmpty && attempt == nil && timer == nil)
        }
    }

    mutating func connect() {
        guard let number = attempt else { return }
        attempt = nil
        connections.insert(number)
        tell(.connected(number))
    }

    mutating func step() {
        switch Int.random(in: 0..<16, using: &random) {
        case 0: tell(.connectRequested)
        case 1...3: connect()
        case 4...5:
            guard let number = attempt else { return }
            attempt = nil
            let kinds: [ConnectionFailure.RetryPolicy] = [.always, .atFirst]
            let kind = Int.random(in: 0..<8, using: &random)
            let finality = kind < kinds.count ? kinds[kind] : .never
            tell(.attemptFailed(number, ConnectionFailure(TransportError(.refused, "refused"), finality)))
        case 6...7:
            guard let number = used, connections.remove(number) != nil else { return }
            stale.append(number)
            used = nil
            tell(.connectionLost(number, TransportError(.closed, "lost")))
        case 8...9:
            guard let number = used, connections.contains(number) else { return }
            tell(.goAway(number, reconnectAfter: .milliseconds(Int.random(in: 0...100_000, using: &random))))
        case 10...12: fire()
        case 13...14: tellLate()
        default:
            switch Int.random(in: 0..<20, using: &random) {
            case 0:
                isClosed = true
                tell(.closeRequested)
            case 1...4:
                isUnwanted = true
                tell(.disconnectRequested)
                isUnwanted = false
                #expect(attempt == nil && timer == nil && connections.isEmpty)
            default: break
            }
        }
    }

    private mutating func fire() {
        guard let number = timer else { return }
        timer = nil
        tell(.retryTimerFired(number))
    }

    /// Sends an input of a finished attempt or connection; it must have no effect.
    private mutating func tellLate() {
        let number = stale.randomElement(using: &random)!
        let inputs: [Input] = [
            .connected(number), .attemptFailed(number, ConnectionFailure(TransportError(.refused, "late"))),
            .connectionLost(number, TransportError(.closed, "late")), .goAway(number, reconnectAfter: .zero),
            .retryTimerFired(number),
        ]
        let before = machine.state
        tell(inputs.randomElement(using: &random)!)
        #expect(machine.state == before)
    }

    /// Makes every following attempt succeed.
    mutating func succeed() {
        if case .disconnected = machine.state { tell(.connectRequested) }
        fire()
        connect()
    }
}

@Suite struct ConnectionMachineRandomTests {
    @Test("any sequence of inputs leads to one attempt at a time, none after close(), and a connection on success")
    func walks() {
        var ends: [Bool: Int] = [:]
        for seed in 0..<2_000 as Range<UInt64> {
            var run = RandomRun(seed: seed)
            for _ in 0..<100 { run.step() }
            // A policy that gives up leaves the client with the old connection.
            let isLast = run.machine.state == .draining && run.attempt == nil && run.timer == nil
            run.succeed()
            if run.isClosed {
                #expect(run.machine.state == .closed, "seed \(seed)")
            } else {
                #expect(run.machine.state == (isLast ? .draining : .connected), "seed \(seed)")
            }
            ends[run.isClosed, default: 0] += 1
        }
        // Both kinds of end occurred.
        #expect(ends.count == 2)
    }
}
