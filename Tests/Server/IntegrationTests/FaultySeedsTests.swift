import Foundation
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Two clients write and observe over links that are cut, stalled, delayed and split, while their old connections stay open beside the
/// new ones, all by seed. `TREBUCHET_SEED=17` runs one seed alone.
@Suite(.timeLimit(.minutes(10))) struct FaultySeedsTests {
    private static let seeds: ClosedRange<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["TREBUCHET_SEED"].flatMap({ UInt64($0) }) { return seed...seed }
        return environment["TREBUCHET_LONG_TESTS"] == "1" ? 1...200 : 1...12
    }()
    private static let numbersPerWriter = 60

    /// Harsh, and cut so often that no connection carries a tenth of the traffic.
    private static let faults: FaultyLink.Faults = {
        var faults = FaultyLink.Faults.harsh
        faults.cutAfterBytes = 1...4_000
        faults.resets = 0.25
        faults.halfOpens = 0.25
        faults.lateDeliveries = 0.25
        faults.halfOpenTime = .milliseconds(1)...(.milliseconds(200))
        return faults
    }()

    /// A writer's knowledge of its numbers. Every other number is written by an `@Idempotent` method.
    private struct WriterRecord: Sendable {
        var acknowledged: Set<Int> = []
        var unknown: Set<Int> = []
        /// The numbers of `@Idempotent` calls that ended without a response.
        var unrepeated: [Int: String] = [:]
    }

    @Test(
        "every reader advances to the last value, and acknowledged numbers are present once, whatever the link does",
        arguments: seeds)
    func seed(_ seed: UInt64) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2)
        await server.expose(OnceWrittenNumbers(actorSystem: server.actorSystem), as: "ledger")
        let address = try await server.start()
        var scenes: [(link: FaultyLink, client: TrebuchetClient, ledger: OnceWrittenNumbers)] = []
        for index in 0..<2 {
            let link = try FaultyLink(to: address, seed: seed * 2 + UInt64(index), faults: Self.faults)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(2)
            options.reconnect.maximumDelay = .milliseconds(20)
            options.reconnect.retriesFirstConnection = true
            let client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            scenes.append((link, client, try client.resolve(OnceWrittenNumbers.self, id: "ledger")))
        }
        var readers: [Task<[[Int]], Never>] = []
        for scene in scenes {
            let ledger = scene.ledger
            readers.append(Task { await Self.read(ledger) })
        }
        let written = await withTaskGroup(of: WriterRecord.self) { group in
            for (index, scene) in scenes.enumerated() {
                let ledger = scene.ledger
                group.addTask { await Self.write(ledger, from: (index + 1) * 1_000) }
            }
            return await group.reduce(into: WriterRecord()) {
                $0.acknowledged.formUnion($1.acknowledged)
                $0.unknown.formUnion($1.unknown)
                $0.unrepeated.merge($1.unrepeated) { first, _ in first }
            }
        }
        // Bytes of old connections arrive before the end.
        #expect(await eventually(within: .seconds(60)) { scenes.allSatisfy { $0.link.counters.leftOpen == 0 } })
        #expect(await eventually(within: .seconds(60)) { await server.connectionCount <= scenes.count })
        // The end, at which the readers stop; written without a network.
        let own = try OnceWrittenNumbers.resolve(id: TrebuchetActorID("ledger"), using: server.actorSystem)
        try await own.add(Self.end)
        let last = try await own.all()
        #expect(Set(last).count == last.count, "no number is present twice; seed \(seed)")
        #expect(written.acknowledged.isSubset(of: last), "acknowledged numbers are present; seed \(seed)")
        #expect(written.unrepeated == [:], "the calls of an @Idempotent method are all answered; seed \(seed)")
        #expect(Set(last).isSubset(of: written.acknowledged.union(written.unknown).union([Self.end])))
        for reader in readers {
            let seen = await reader.value
            #expect(seen.last == last, "the newest value arrives; seed \(seed)")
            #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.count < $1.count }, "values only advance; seed \(seed)")
        }
        #expect(scenes.map(\.link.counters.accepted).reduce(0, +) > 4, "the links are cut; seed \(seed)")
        for scene in scenes {
            await scene.client.close()
            await scene.link.close()
        }
        await server.shutdown(drain: .zero)
    }

    private static let end = -1

    private static func read(_ ledger: OnceWrittenNumbers) async -> [[Int]] {
        var seen: [[Int]] = []
        for await entries in await ledger.observeEntries() {
            seen.append(entries)
            if entries.last == end { break }
        }
        return seen
    }

    private static func write(_ ledger: OnceWrittenNumbers, from first: Int) async -> WriterRecord {
        var written = WriterRecord()
        for number in first..<(first + numbersPerWriter) {
            let isRepeated = number.isMultiple(of: 2)
            do {
                if isRepeated { try await ledger.put(number) } else { try await ledger.add(number) }
                written.acknowledged.insert(number)
            } catch {
                written.unknown.insert(number)
                if isRepeated { written.unrepeated[number] = "\(error)" }
            }
        }
        return written
    }
}
