import Foundation
import TestSupport

/// The Redis server of a seed, which writes before it acknowledges.
struct GameEngine {
    static let program = "/usr/bin/redis-server"

    let program: ChildProgram

    init(port: Int, folder: String) throws {
        program = try ChildProgram(
            Self.program,
            [
                "--port", "\(port)", "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes",
                "--appendfsync", "always", "--maxmemory-policy", "noeviction",
            ])
    }

    var isReady: Bool { program.lines.contains { $0.contains("eady to accept connections") } }
}
