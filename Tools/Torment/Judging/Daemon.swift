import Foundation
import Glibc
import TestCertificates
import TestSupport
import Trebuchet
import TrebuchetCLI

/// The attacked server, in a separate process.
final class Daemon: Sendable {
    struct Levels: Sendable {
        var report: AdversarialTestDebug.Report
        var descriptors: Int
    }

    /// In KiB.
    struct Memory: CustomStringConvertible {
        /// The resident pages: memory in use and gaps.
        var resident: Int
        /// The bytes allocated and not freed.
        var inUse: Int
        /// Buffers that reactors retain for the next input, of the size of the last one up to a limit, and the varying responses of the
        /// last minute.
        private static let scratch = 4 << 10

        func lowest(_ other: Memory) -> Memory {
            Memory(resident: min(resident, other.resident), inUse: min(inUse, other.inUse))
        }

        /// True if it is at most a tenth above the earlier value. Memory in use may be `scratch` more, and resident memory `slack` KiB
        /// more.
        func isNear(_ before: Memory, slack: Int) -> Bool {
            resident <= before.resident + max(before.resident / 10, slack)
                && inUse <= before.inUse + max(before.inUse / 10, Self.scratch)
        }

        var description: String { "\(resident) KiB (\(inUse) KiB of them in use)" }
    }

    let program: ChildProgram
    /// The folder of its pages.
    private let folder: String
    let port: Int
    let isSecure: Bool
    /// `full` or `closed` for a server without a reader of its output; nil for others.
    let output: Scenario.PortKind?
    private let client: TrebuchetClient
    private let debug: AdversarialTestDebug

    /// Starts it and waits until it listens.
    init(_ tool: String, isSecure: Bool = false, output: Scenario.PortKind? = nil) async throws {
        folder = NSTemporaryDirectory() + "torment-" + UUID().uuidString
        try PageScenarios.Site.make(at: folder)
        var arguments = [
            "serve", "--torment", "--static", folder, "--services", "auth,rooms,collections", "--port", "0",
            "--reactors", "2",
        ]
        if isSecure {
            arguments += [
                "--tls-cert", TestCertificate.path("server.pem"), "--tls-key", TestCertificate.path("server.key"),
            ]
        }
        // Makes it log much.
        if output != nil { arguments += ["--log-level", "debug"] }
        program = try ChildProgram(tool, arguments)
        (self.isSecure, self.output) = (isSecure, output)
        let program = program
        let scheme = isSecure ? "wss://127.0.0.1:" : "ws://127.0.0.1:"
        var port: Int?
        _ = await eventually(within: .seconds(30)) {
            let word = program.lines.lazy.flatMap { $0.split(separator: " ") }.first { $0.hasPrefix(scheme) }
            port = word.flatMap { Int($0.dropFirst(scheme.count)) }
            return port != nil || !program.isRunning
        }
        guard let port else {
            program.kill()
            throw ChildProgram.DidNotStart(description: "the server did not start: \(program.lines)")
        }
        self.port = port
        client = Self.client(port: port, isSecure: isSecure)
        debug = try client.resolve(AdversarialTestDebug.self, id: "debug")
        try await client.connect()
        guard let output else { return }
        program.leaveOutput(isClosed: output == .closed)
        // Each call writes a log line, until the pipe is full. Connections of both reactors, so that one-time allocations are made.
        for _ in 0..<4 {
            let other = Self.client(port: port, isSecure: false)
            try await other.connect()
            let debug = try other.resolve(AdversarialTestDebug.self, id: "debug")
            for _ in 0..<250 { _ = try await debug.report() }
            let nothing = Array("null".utf8)
            _ = try await other.call(
                actor: "rooms/chat-0", target: "join(presence:token:attempt:)", arguments: [nothing, nothing, nothing])
            await other.close()
        }
    }

    deinit {
        program.kill()
        try? FileManager.default.removeItem(atPath: folder)
    }

    static func client(port: Int, isSecure: Bool) -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(20)
        guard isSecure else {
            return TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: options)
        }
        let trusting = TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))
        return TrebuchetClient(transport: .webSocket(host: "localhost", port: port, tls: trusting), options: options)
    }

    var name: String {
        switch output {
        case nil: isSecure ? "the server with TLS" : "the server"
        case .closed: "the server with unreadable output"
        default: "the server with unread output"
        }
    }

    /// Its activities and resources; throws when it does not report them.
    func levels() async throws -> Levels {
        let report = try await debug.report()
        return Levels(report: report, descriptors: program.descriptorCount)
    }

    /// Describes the calls in flight.
    func callsInFlight() async -> String {
        (try? await debug.callsInFlight().map { "\n    " + $0 }.joined()) ?? ""
    }

    /// Measured after the allocator has released its free memory.
    func memory() async throws -> Memory {
        let bytes = try await debug.trim()
        return Memory(resident: program.residentKiB, inUse: bytes >> 10)
    }

    /// True if it exits with 0 on request.
    func endInOrder() async -> Bool {
        await client.close()
        kill(program.pid, SIGTERM)
        let program = program
        return await eventually(within: .seconds(30)) { !program.isRunning } && program.end == "ended with 0"
    }

    func stop() async {
        await client.close()
        program.kill()
        let program = program
        _ = await eventually(within: .seconds(5)) { !program.isRunning }
    }
}
