import Synchronization
import TestSupport
import Trebuchet
import TrebuchetCLI

/// An honest client of this project: calls, `@Idempotent` calls, a state, events, filters and on-demand actors.
final class SwiftClient: ControlClient {
    private enum Phase { case running, pausing, resting, stopped }

    let ledger: ControlClientRecord
    private let client: TrebuchetClient
    private let own: AdversarialTarget
    private let ownName: String
    private let phase = Mutex(Phase.running)
    /// The numbers of the last observed state and event.
    private let observed = Mutex((state: 0, path: 0, tick: 0))
    private let readers = Mutex<[Task<Void, Never>]>([])

    init(name: String, port: Int, isSecure: Bool) async throws {
        ledger = ControlClientRecord(name: name)
        client = Daemon.client(port: port, isSecure: isSecure)
        ownName = "honest/\(name)"
        own = try client.resolve(AdversarialTarget.self, id: ownName)
        try await client.connect()
        _ = try await own.set(0)
        observe()
        // Events arrive from the moment when the server has accepted the stream.
        _ = await eventually(within: .seconds(20)) {
            _ = try? await own.tick(1)
            return observed.withLock { $0.tick > 0 }
        }
        let work = Task { await live() }
        readers.withLock { $0.append(work) }
    }

    // MARK: Streams

    private func observe() {
        let (own, ledger) = (own, ledger)
        let state = Task { [weak self] in
            for await state in await own.observeState() {
                self?.saw(state.number, \.state, "the state")
            }
            if !Task.isCancelled { ledger.problem("the stream of the state ended") }
        }
        let path = Task { [weak self] in
            for await number in await own.observeState(filter: .path("/number").distinct(), as: Int.self) {
                self?.saw(number, \.path, "the filtered state")
            }
            if !Task.isCancelled { ledger.problem("the filtered stream ended") }
        }
        let condition = Task {
            for await state in await own.observeState(filter: .where("/number", .greater(than: 50)))
            where state.number <= 50 {
                ledger.problem("a filter for more than 50 admitted \(state.number)")
            }
            if !Task.isCancelled { ledger.problem("the stream with a condition ended") }
        }
        let ticks = Task { [weak self] in
            do {
                var last: Int?
                for try await tick in await own.observeTicks() {
                    if let last, tick != last + 1 { ledger.problem("event \(tick) came after \(last)") }
                    last = tick
                    self?.observed.withLock { $0.tick = tick }
                }
                if !Task.isCancelled { ledger.problem("the stream of events ended") }
            } catch {
                if !Task.isCancelled { ledger.problem("the stream of events ended: \(error)") }
            }
        }
        readers.withLock { $0 += [state, path, condition, ticks] }
    }

    private func saw(_ number: Int, _ place: WritableKeyPath<(state: Int, path: Int, tick: Int), Int>, _ what: String) {
        let last = observed.withLock { observed in
            defer { observed[keyPath: place] = number }
            return observed[keyPath: place]
        }
        if number < last { ledger.problem("\(what) went back from \(last) to \(number)") }
    }

    // MARK: Calls

    private func live() async {
        var totals: [Int: Int] = [:]
        var round = 0
        while true {
            let phase = phase.withLock { phase in
                if phase == .pausing { phase = .resting }
                return phase
            }
            if phase == .stopped { return }
            guard phase == .running else {
                try? await Task.sleep(for: .milliseconds(5))
                continue
            }
            round += 1
            await cycle(round, &totals)
            // A steady caller, not a flood.
            try? await Task.sleep(for: .milliseconds(3))
        }
    }

    private func cycle(_ round: Int, _ totals: inout [Int: Int]) async {
        let own = own
        await check("sum", round + 7) { try await own.sum(round, 7) }
        let text = String(repeating: "é\(round)", count: 1 + round % 300)
        await check("echo", text) { try await own.echo(text) }
        await check("set", round) { try await own.set(round) }
        let place = round % 16
        totals[place, default: 0] += round
        await check("put", totals[place]!) { [client, ownName] in
            try await client.resolve(AdversarialTarget.self, id: "\(ownName)-\(place)").put(round)
        }
        var last = 0
        await timed("tick") { last = try await own.tick(3) }
        if round % 16 == 0 {
            await check("later", 2, isTimed: false) { try await own.later(2) }
            await checkFailure()
            let isSeen = await eventually(within: .seconds(20)) {
                observed.withLock { $0.state == round && $0.path == round && $0.tick == last }
            }
            if !isSeen {
                ledger.problem(
                    "in 20 s the streams did not reach \(round) and \(last): \(observed.withLock { "\($0)" })")
            }
        }
    }

    private func check<Value: Equatable>(
        _ what: String, _ expected: Value, isTimed: Bool = true, _ call: () async throws -> Value
    ) async {
        await timed(what, isTimed) {
            let value = try await call()
            if value != expected { ledger.problem("\(what) gave \(value), not \(expected)") }
        }
    }

    private func timed(_ what: String, _ isTimed: Bool = true, _ call: () async throws -> Void) async {
        let start = ContinuousClock.now
        do {
            // The machine is busy with hostile clients, too.
            try await withDeadline(.seconds(20)) { try await call() }
            if isTimed { ledger.took(ContinuousClock.now - start) }
        } catch {
            ledger.problem("\(what) failed: \(error)")
        }
    }

    private func checkFailure() async {
        do throws(any Error) {
            try await own.fail("as it should")
            ledger.problem("a method that throws did not")
        } catch {
            if (error as? AdversarialTargetError)?.text != "as it should" { ledger.problem("fail threw \(error)") }
        }
    }

    // MARK: Lifecycle

    func pause() async -> Bool {
        phase.withLock { if $0 == .running { $0 = .pausing } }
        return await eventually(within: .seconds(30)) { phase.withLock { $0 == .resting } }
    }

    func resume() { phase.withLock { $0 = .running } }

    func stop() async {
        phase.withLock { $0 = .stopped }
        for task in readers.withLock({ $0 }) { task.cancel() }
        await client.close()
    }
}
