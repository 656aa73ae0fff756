import Foundation
import Platform
import TestSupport
import Trebuchet
import TrebuchetTesting

/// `Consistency count SEED PORTS FIRST COUNT CALLS STRICTNESS`: clients of the counters of `trebuchet serve`, in a separate process. It prints
/// the lines that `ClientPool` prints.
struct CounterClientPool: Sendable {
    let seed: UInt64
    let ports: [Int]
    let first: Int
    let count: Int
    let calls: Int
    let strictness: Strictness
    private let progress = ClientProgress()

    init?(_ words: [String]) {
        let numbers = words.compactMap { Int($0) }
        guard words.count == 6, numbers.count >= 4, let seed = UInt64(words[0]),
            let ports = FaultyClientLinks.ports(words[1]),
            let first = Int(words[2]), let count = Int(words[3]), let calls = Int(words[4]),
            let strictness = Strictness(rawValue: words[5])
        else { return nil }
        (self.seed, self.ports, self.first, self.count, self.calls) = (seed, ports, first, count, calls)
        self.strictness = strictness
    }

    func run() async throws {
        ClientPool.listen(progress)
        var clients: [(client: TrebuchetClient, links: FaultyClientLinks)] = []
        for number in first..<(first + count) {
            var random = RandomSource(seed: seed &* 1_000_003 &+ UInt64(number))
            let faults = Player.faults(&random)
            let isOrdered = strictness == .ordered
            let known = FaultyClientLinks.known(to: isOrdered ? number % ports.count : number, of: ports)
            let links = try FaultyClientLinks(
                to: known, seed: seed &+ UInt64(number), faults: isOrdered ? .none : faults)
            let client = TrebuchetClient(transports: FaultyClientLinks.transports(links.ports), options: Player.options)
            try await client.connect()
            clients.append((client, links))
        }
        let readers = try clients.enumerated().map { index, entry in
            let number = (first + index) % GameServer.games
            let counter = try entry.client.resolve(Counter.self, id: Counter.name(number))
            return Task { await read(counter, "reader \(first + index) of counter \(number)") }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, entry) in clients.enumerated() {
                let number = first + index
                let counter = try entry.client.resolve(Counter.self, id: Counter.name(number % GameServer.games))
                // Two at a time, as players do.
                for lane in 0..<2 { group.addTask { await add(to: counter, number, lane) } }
            }
            try await group.waitForAll()
        }
        _ = await eventually(within: .seconds(600)) { clients.allSatisfy(\.links.isDone) }
        Output.printLine("played")
        var totals = Totals()
        for reader in readers { totals.values += await reader.value }
        for entry in clients { entry.links.addCounters(to: &totals) }
        Output.printLine("totals \(String(decoding: try JSONEncoder().encode(totals), as: UTF8.self))")
        Output.printLine("done")
        while true { try await Task.sleep(for: .seconds(60)) }
    }

    private func add(to counter: Counter, _ number: Int, _ lane: Int) async {
        var random = RandomSource(seed: seed ^ UInt64(number * 2 + lane + 1) << 32)
        for index in stride(from: lane, to: calls, by: 2) {
            try? await Task.sleep(
                for: .milliseconds(Int.random(in: 0...(strictness == .ordered ? 100 : 60), using: &random)))
            let call = number * Player.callsPerPlayer + index
            progress.set("client \(number), lane \(lane)", "waits for call \(call)")
            do {
                Output.printLine("acked \(call) \(try await counter.add(1))")
            } catch {
                let error = error as? TrebuchetError ?? TrebuchetError(.internal, "\(error)")
                switch error.code {
                case .unknownOutcome where strictness != .ordered: Output.printLine("unknown \(call)")
                case .unavailable where strictness != .ordered: Output.printLine("refused \(call) \(error.message)")
                default: Output.finding("client \(number): call \(call) ended with \(error)")
                }
            }
        }
        progress.set("client \(number), lane \(lane)", nil)
    }

    /// Reads until the end has been added; returns how many values came.
    private func read(_ counter: Counter, _ name: String) async -> Int {
        var (check, values) = (CounterCheck(strictness), 0)
        while true {
            progress.set(name, "waits after \(check.description)")
            let stream = await counter.observeCount()
            var hasBegun = false
            for await count in stream {
                hasBegun = true
                values += 1
                if let text = check.take(count) { Output.finding("\(name): \(text)") }
                progress.set(name, "waits after \(check.description)")
                guard count >= Counter.end else { continue }
                Output.printLine("final \(counterNumber(name)) count \(count) \(name)")
                progress.set(name, nil)
                return values
            }
            guard strictness != .ordered, case .failed(let error) = stream.outcome,
                error.code == .overflow || error.code == .unavailable && !hasBegun
            else {
                Output.finding(
                    "\(name): the stream ended at \(check.description): \(String(describing: stream.outcome))")
                return values
            }
            check.overflowed()
        }
    }

    private func counterNumber(_ name: String) -> Substring { name.split(separator: " ").last ?? "" }
}
