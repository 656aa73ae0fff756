import Foundation
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(1))) struct LoadingMeasure {
    @Test("measure", arguments: ["rows", "texts"])
    func measure(_ property: String) async throws {
        let store = MemoryStore()
        let key = StateKey("states", "ledger.\(property)")
        try await store.write([.snapshot(LogSnapshot(epoch: "e", number: 1, bytes: Array("[]".utf8)), key)])
        let count: UInt64 = 79_000
        for start in stride(from: UInt64(0), to: count, by: 1_000) {
            try await store.write(
                (start..<start + 1_000).map { number in
                    let text = #"[{"op":"add","path":"/\#(number)","value":{"id":\#(number),"text":"an entry of the ledger \#(number)"}}]"#
                    return .append(LogEntry(number: number + 2, base: number + 1, bytes: Array(text.utf8)), key)
                })
        }
        try await withTestServer(reactors: 1, store: store) { server in
            let system = server.actorSystem
            server.expose(MeasuredLedger.self, as: "ledger") { _ in MeasuredLedger(actorSystem: system) }
            await server.expose(MeasuredPing(actorSystem: system), as: "ping")
        } body: { client, _ in
            let ledger = try client.resolve(MeasuredLedger.self, id: "ledger")
            let ping = try client.resolve(MeasuredPing.self, id: "ping")
            for _ in 0..<100 { _ = try await ping.ping() }
            let clock = ContinuousClock()
            let loading = Task { () -> Duration in
                let began = clock.now
                let counts = try await ledger.count()
                #expect(counts == Int(count))
                return clock.now - began
            }
            let isDone = Task { _ = try await loading.value }
            let watching = Task { () -> (Duration, Int) in
                var (longest, pings) = (Duration.zero, 0)
                while !Task.isCancelled {
                    let began = clock.now
                    _ = try await ping.ping()
                    longest = max(longest, clock.now - began)
                    pings += 1
                }
                return (longest, pings)
            }
            try await isDone.value
            watching.cancel()
            let (worst, all) = try await watching.value
            print("MEASURED \(property): load \(try await loading.value), longest call of another actor \(worst) of \(all)")
        }
    }
}

@Trebuchet
distributed actor MeasuredPing {
    distributed func ping() -> Int { 1 }
}

struct MeasuredRow: Codable, Sendable, Identifiable {
    let id: Int
    let text: String
}

@Trebuchet
distributed actor MeasuredLedger {
    @StreamedState(persisted: true) var rows = KeyedCollection<MeasuredRow>()
    @StreamedState(persisted: true) var texts: [MeasuredRow] = []

    distributed func count() -> Int { rows.count + texts.count }
}
