import Foundation
import TestSupport

/// The checkout that this test was built from.
enum Checkout {
    static let root = packageRoot
}

/// A program that runs to its end.
struct Run {
    let status: Int32
    /// The output of both streams.
    let output: String

    /// - Parameter program: a path, or a name on the `PATH`.
    init(_ program: String, _ arguments: [String], in folder: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.currentDirectoryURL = folder
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        status = process.terminationStatus
    }

    static func exists(_ program: String) -> Bool {
        (try? Run("sh", ["-c", "command -v \(program)"], in: Checkout.root).status) == 0
    }
}

/// Runs `body` with a folder that is removed afterwards.
func withTemporaryFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "generator-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
}
