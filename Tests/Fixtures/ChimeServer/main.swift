import Foundation
import Trebuchet
import TrebuchetStore

// ChimeServer FILE: serves actors with alarms on a free port, which it prints, until it is killed.

/// Counts its alarms in its persisted state.
@Trebuchet
distributed actor Chime {
    @StreamedState(persisted: true) var rings: [String: Int] = [:]

    @Idempotent distributed func start(_ alarm: String, inMilliseconds milliseconds: Int) throws {
        rings[alarm] = 0
        try alarms.set(alarm, at: Date(timeIntervalSinceNow: Double(milliseconds) / 1_000))
    }
    distributed func counts() -> [String: Int] { rings }

    /// Does not suspend: its change is in the same write as the removal of the alarm.
    func alarm(_ alarm: Alarm) {
        // An early alarm counts as many.
        rings[alarm.name, default: 0] += alarm.dueTime <= Date() ? 1 : 100
    }
}

do {
    let store = try SQLiteStore(path: CommandLine.arguments.dropFirst().first ?? "chimes.db")
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), store: store)
    server.expose(Chime.self, as: "chimes/*") { _ in Chime(actorSystem: server.actorSystem) }
    print("listens on port \(try await server.start().port)")
    fflush(nil)
    try await server.run()
} catch {
    FileHandle.standardError.write(Data("ChimeServer: \(error)\n".utf8))
    exit(1)
}
