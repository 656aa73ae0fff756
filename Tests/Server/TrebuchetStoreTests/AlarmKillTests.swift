import Foundation
import Glibc
import Platform
import TestSupport
import Testing
import Trebuchet

/// The methods of the actor of `ChimeServer`.
@Trebuchet
private distributed actor Chime {
    @Idempotent distributed func start(_ alarm: String, inMilliseconds milliseconds: Int) throws {}
    distributed func counts() -> [String: Int] { [:] }
}

/// A real server with alarms in a SQLite file is killed with `SIGKILL`.
@Suite(.serialized, .timeLimit(.minutes(5))) struct AlarmKillTests {
    /// Runs `body` with a client of a new process, and kills the process.
    private func withServer(_ file: String, _ body: (TrebuchetClient) async throws -> Void) async throws {
        let process = try ChildProcess(ServeProcess.built("ChimeServer"), [file])
        var port: Int?
        while port == nil, let line = await process.nextLine() {
            if line.contains("listens on port ") { port = line.split(separator: " ").last.flatMap { Int($0) } }
        }
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: try #require(port)))
        try await client.connect()
        try await body(client)
        process.signal(SIGKILL)
        _ = await process.finish()
        await client.close()
    }

    @Test(
        "an alarm that was set before kill -9 is delivered after the restart, and once however often the server is killed"
    )
    func restart() async throws {
        let folder = try TemporaryFolder()
        try await withServer(folder.file()) { client in
            try await client.resolve(Chime.self, id: "chimes/1").start("dawn", inMilliseconds: 1_500)
        }
        for _ in 0..<3 {
            try await withServer(folder.file()) { client in
                let chime = try client.resolve(Chime.self, id: "chimes/1")
                #expect(try await eventually { try await chime.counts() == ["dawn": 1] })
            }
        }
    }

    @Test(
        "kill -9 while alarms are delivered loses none and repeats no change", arguments: 1...3 as ClosedRange<UInt64>)
    func killed(seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        var random = RandomSource(seed: seed)
        let names = (0..<60).map { "alarm \($0)" }
        try await withServer(folder.file()) { client in
            for (number, name) in names.enumerated() {
                let chime = try client.resolve(Chime.self, id: "chimes/\(number % 7)")
                try await chime.start(name, inMilliseconds: Int.random(in: 0..<2_000, using: &random))
            }
        }
        func rings(_ client: TrebuchetClient) async throws -> [String: Int] {
            var all: [String: Int] = [:]
            for number in 0..<7 {
                let counts = try await client.resolve(Chime.self, id: "chimes/\(number)").counts()
                all.merge(counts) { one, _ in one }
            }
            return all
        }
        // Each process is killed after some more deliveries, in the middle of others.
        for _ in 0..<4 {
            let enough = Int.random(in: 1..<12, using: &random)
            try await withServer(folder.file()) { client in
                var before: Int?
                _ = try await eventually {
                    let count = try await rings(client).values.reduce(0, +)
                    before = before ?? count
                    return count >= min(names.count, (before ?? 0) + enough)
                }
            }
        }
        try await withServer(folder.file()) { (client) async throws in
            let expected = Dictionary(uniqueKeysWithValues: names.map { ($0, 1) })
            #expect(try await eventually(within: .seconds(60)) { try await rings(client) == expected })
            #expect(try await rings(client) == expected, "seed \(seed)")
        }
    }
}
