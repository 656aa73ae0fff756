import Commands
import Foundation
import Networking
import Transports
import TrebuchetRedis

/// A redis-server that appends each change to a file (everysec), in a separate folder, for the duration of a measurement.
final class RedisProcess {
    let port: Int
    private let process = Process()
    private let input = Pipe()
    private let folder: URL

    init() async throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-bench-redis-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Uses a port that was free a moment ago.
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [ReactorGroup.client]) { _ in }
        port = listener.address.port
        await listener.close()
        process.executableURL = URL(filePath: "/bin/sh")
        // The shell kills the server when its input closes, which also happens when this program is killed.
        process.arguments = [
            "-c", "\"$@\" & cat >/dev/null; kill -KILL $!; wait", "sh", "redis-server",
            "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder.path, "--save", "",
            "--appendonly", "yes", "--appendfsync", "everysec",
        ]
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        let client = RedisClient(try Self.target(port))
        defer { client.close() }
        for _ in 0..<500 {
            if (try? await client.send(RedisCommand("PING"))) != nil { return }
            guard process.isRunning else { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        stop()
        throw UsageError(
            "redis-server did not start; is it installed? Debian: apt-get install redis-server redis-tools")
    }

    deinit { stop() }

    static func target(_ port: Int) throws -> RedisTarget {
        let url = try RedisURL("redis://127.0.0.1:\(port)")
        return RedisTarget(url.endpoints[0], as: url)
    }

    func stop() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Returns the requests per second of `redis-benchmark` with a command, over one connection.
    func benchmark(_ command: [String], requests: Int, inFlight: Int) throws -> Double {
        let benchmark = Process()
        let output = Pipe()
        benchmark.executableURL = URL(filePath: "/usr/bin/env")
        benchmark.arguments =
            ["redis-benchmark", "-p", "\(port)", "-c", "1", "-P", "\(inFlight)", "-n", "\(requests)", "--csv"] + command
        benchmark.standardOutput = output
        benchmark.standardError = FileHandle.nullDevice
        try benchmark.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        benchmark.waitUntilExit()
        // Below the line "test","rps",… is the command, which may contain any text, and quoted numbers.
        let line = text.split(separator: "\n").last ?? ""
        let measurements = line.split(separator: "\",\"").suffix(7)
        guard measurements.count == 7, let rate = measurements.first.flatMap({ Double($0) }) else {
            throw UsageError("unexpected output of redis-benchmark: \(text.prefix(300))")
        }
        return rate
    }
}
