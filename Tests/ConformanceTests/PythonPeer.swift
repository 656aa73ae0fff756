import Foundation
import Testing

/// A script of the folder Scripts in a process of its own, with the Python that scripts/test has prepared.
final class PythonPeer {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var unread = ""

    init(_ script: String, _ arguments: [String] = []) throws {
        let path = try #require(Bundle.module.path(forResource: script, ofType: "py", inDirectory: "Scripts"))
        process.executableURL = try Self.python()
        process.arguments = [path] + arguments
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    deinit {
        guard process.isRunning else { return }
        process.terminate()
        process.waitUntilExit()
    }

    /// The next line that it prints, what it prints of its errors among them; nil when it has ended.
    func nextLine() -> String? {
        while true {
            if let end = unread.firstIndex(of: "\n") {
                defer { unread.removeSubrange(...end) }
                return String(unread[..<end])
            }
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { return nil }
            unread += String(decoding: data, as: UTF8.self)
        }
    }

    /// Waits for its end; all that is left of what it printed, and its exit code.
    func finish() -> (text: String, status: Int32) {
        try? input.fileHandleForWriting.close()
        var text = ""
        while let line = nextLine() { text += line + "\n" }
        process.waitUntilExit()
        return (text, process.terminationStatus)
    }

    /// Fails unless it says that all was as it should be.
    func expectOK() {
        let (text, status) = finish()
        #expect(status == 0, "\(text)")
        #expect(text == "ok\n")
    }

    private static func python() throws -> URL {
        let prepared = ".build/python/bin/python"
        let path = ProcessInfo.processInfo.environment["TREBUCHET_PYTHON"] ?? prepared
        let exists = FileManager.default.isExecutableFile(atPath: path)
        try #require(
            exists, "there is no Python with 'websockets' at \(path); run scripts/test once, which prepares it")
        return URL(fileURLWithPath: path)
    }
}
