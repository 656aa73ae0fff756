import Foundation
import ServicesPython
import TestSupport
import Testing

/// A script of the folder Scripts in a separate process, with the Python that scripts/test has prepared.
struct PythonPeer {
    private let process: ChildProcess

    init(_ script: String, _ arguments: [String] = []) throws {
        let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Scripts"))
        process = try ChildProcess(Self.python(), [path] + arguments, error: .merged)
    }

    /// A script of the client of the services.
    init(services script: String, _ arguments: [String]) throws {
        let path = try #require(ServicesPython.path(of: script))
        process = try ChildProcess(Self.python(), [path] + arguments, error: .merged)
    }

    /// The next line of its output, including standard error; nil when it has ended.
    func nextLine() async -> String? { await process.nextLine() }

    func finish() async -> ChildProcess.Outcome { await process.finish() }

    /// Waits for its end; fails unless it reports success.
    func expectOK() async {
        let outcome = await process.finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output == "ok\n")
    }

    private static func python() throws -> String {
        let path = ServicesPython.interpreter
        let exists = FileManager.default.isExecutableFile(atPath: path)
        try #require(
            exists, "there is no Python with 'websockets' at \(path); run scripts/test once, which prepares it")
        return path
    }
}
