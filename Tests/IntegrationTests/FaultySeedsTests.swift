import Foundation
import Testing
import Trebuchet
import TrebuchetTesting

/// Two clients write and observe over links that are cut, stalled, delayed and split, each as its seed says.
@Suite(.timeLimit(.minutes(10))) struct FaultySeedsTests {
    private static let seeds: ClosedRange<UInt64> =
        ProcessInfo.processInfo.environment["TREBUCHET_LONG_TESTS"] == "1" ? 1...200 : 1...12
    private static let numbersPerWriter = 60

    /// Harsh, and cut often enough that no connection carries a tenth of what there is to say.
    private static let faults: FaultyLink.Faults = {
        var faults = FaultyLink.Faults.harsh
        faults.cutAfterBytes = 1...4_000
        return faults
    }()

    /// What a writer knows of its numbers.
    private struct Written: Sendable {
        var acknowledged: Set<Int> = []
        var unknown: Set<Int> = []
    }

    @Test(
        "every reader goes forward to the last value, and what was acknowledged is there once, whatever the link does",
        arguments: seeds)
    func seed(_ seed: UInt64) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        await server.expose(Ledger(actorSystem: server.actorSystem), as: "ledger")
        let address = try await server.start()
        var scenes: [(link: FaultyLink, client: TrebuchetClient, ledger: Ledger)] = []
        for index in 0..<2 {
            let link = try FaultyLink(to: address, seed: seed * 2 + UInt64(index), faults: Self.faults)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(2)
            options.reconnect.maximumDelay = .milliseconds(20)
            options.reconnect.retriesFirstConnection = true
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            scenes.append((link, client, try client.resolve(Ledger.self, id: "ledger")))
        }
        var readers: [Task<[[Int]], Never>] = []
        for scene in scenes {
            let ledger = scene.ledger
            readers.append(Task { await Self.read(ledger) })
        }
        let written = await withTaskGroup(of: Written.self) { group in
            for (index, scene) in scenes.enumerated() {
                let ledger = scene.ledger
                group.addTask { await Self.write(ledger, from: (index + 1) * 1_000) }
            }
            return await group.reduce(into: Written()) {
                $0.acknowledged.formUnion($1.acknowledged)
                $0.unknown.formUnion($1.unknown)
            }
        }
        // The end, at which the readers stop; written without a network.
        let own = try Ledger.resolve(id: TrebuchetActorID("ledger"), using: server.actorSystem)
        try await own.add(Self.end)
        let last = try await own.all()
        #expect(Set(last).count == last.count, "nothing is there twice; seed \(seed)")
        #expect(written.acknowledged.isSubset(of: last), "what was acknowledged is there; seed \(seed)")
        #expect(Set(last).isSubset(of: written.acknowledged.union(written.unknown).union([Self.end])))
        for reader in readers {
            let seen = await reader.value
            #expect(seen.last == last, "the newest value arrives; seed \(seed)")
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.count < $1.count }, "forward alone; seed \(seed)")
        }
        #expect(scenes.map(\.link.counters.accepted).reduce(0, +) > 4, "the links do cut; seed \(seed)")
        for scene in scenes {
            await scene.client.close()
            await scene.link.close()
        }
        await server.shutdown(drain: .zero)
    }

    private static let end = -1

    private static func read(_ ledger: Ledger) async -> [[Int]] {
        var seen: [[Int]] = []
        for await entries in await ledger.observeEntries() {
            seen.append(entries)
            if entries.last == end { break }
        }
        return seen
    }

    private static func write(_ ledger: Ledger, from first: Int) async -> Written {
        var written = Written()
        for number in first..<(first + numbersPerWriter) {
            do {
                try await ledger.add(number)
                written.acknowledged.insert(number)
            } catch {
                written.unknown.insert(number)
            }
        }
        return written
    }
}
