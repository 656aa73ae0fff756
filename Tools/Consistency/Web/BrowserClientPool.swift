import Foundation
import Networking
import Platform
import Synchronization
import TestSupport
import Transports
import TrebuchetTesting

/// `Consistency play-web SEED PORTS FIRST COUNT CALLS`: what a crew does, but that its clients are those of Web/dist/trebuchet.js in a
/// process of Node. This one has the lines that fail, and hands on what that one says.
final class BrowserClientPool: Sendable {
    private let seed: UInt64
    private let ports: [Int]
    private let first: Int
    private let count: Int
    private let calls: Int
    private let lines = Mutex<Set<String>>([])

    init?(_ words: [String]) {
        guard words.count == 5, let ports = FaultyClientLinks.ports(words[1]) else { return nil }
        let numbers = words.compactMap(Int.init)
        guard numbers.count >= 4, let seed = UInt64(words[0]) else { return nil }
        self.ports = ports
        self.seed = seed
        (first, count, calls) = (numbers[numbers.count - 3], numbers[numbers.count - 2], numbers[numbers.count - 1])
    }

    /// Returns the path of a client's script in the repository that this was built from.
    static func script(_ name: String) -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return root.appendingPathComponent("Web/test/consistency/\(name)").path
    }

    func run() async throws {
        let lines = try (first..<(first + count)).map { number in
            let seed = seed &* 1_000_003 &+ UInt64(number)
            var random = RandomSource(seed: seed)
            return try FaultyClientLinks(
                to: FaultyClientLinks.known(to: number, of: ports), seed: seed, faults: Player.faults(&random))
        }
        let addresses = [ports] + lines.map(\.ports)
        let words =
            ["node", Self.script("players.mjs")] + [seed, UInt64(first), UInt64(calls)].map(String.init)
            + addresses.map { ports in ports.map { "ws://127.0.0.1:\($0)" }.joined(separator: ",") }
        let players = try ChildProgram("/usr/bin/env", words) { self.take($0) }
        startThread {
            while let line = readLine() { players.tell(line) }
            // The judge has gone.
            players.kill()
            exit(0)
        }
        let cutting = Task { await cut(lines) }
        try await wait(for: "calls-ended", players)
        cutting.cancel()
        await cutting.value
        // Messages of old connections must arrive before the end.
        _ = await eventually(within: .seconds(600)) { lines.allSatisfy(\.isDone) }
        Output.printLine("played")
        try await wait(for: "readers-ended", players)
        var totals = Totals()
        for line in lines { line.addCounters(to: &totals) }
        Output.printLine("totals \(String(decoding: try JSONEncoder().encode(totals), as: UTF8.self))")
        Output.printLine("done")
        while true { try await Task.sleep(for: .seconds(60)) }
    }

    private func take(_ line: String) {
        if ["calls-ended", "readers-ended"].contains(line) {
            lines.withLock { _ = $0.insert(line) }
        } else {
            Output.printLine(line)
        }
    }

    private func wait(for line: String, _ players: ChildProgram) async throws {
        while !lines.withLock({ $0.contains(line) }) {
            if let end = players.end {
                Output.finding("the players in Node \(end): \(players.lines.suffix(20))")
                return
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Cuts lines now and then, beside what these do by themselves.
    private func cut(_ lines: [FaultyClientLinks]) async {
        var random = RandomSource(seed: seed &+ UInt64(first) << 20)
        while !Task.isCancelled {
            try? await Task.sleep(for: .milliseconds(Int.random(in: 20...300, using: &random)))
            let silence = Duration.milliseconds(Int.random(in: 50...600, using: &random))
            let cuts: [FaultyLink.Cut] = [.inOrder, .reset, .halfOpen(silence), .late(silence)]
            let line = lines[Int.random(in: 0..<lines.count, using: &random)]
            await line.cutAll(cuts[Int.random(in: 0..<cuts.count, using: &random)])
        }
    }
}
