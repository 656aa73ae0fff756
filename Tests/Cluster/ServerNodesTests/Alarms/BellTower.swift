import Foundation
import NodeSupport
import Platform
import Synchronization
import TestSupport
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet

/// An actor of a cluster whose alarms are counted in its persisted state.
@Trebuchet
distributed actor Bell {
    @StreamedState(persisted: true) var rings: [String: Int] = [:]
    private let name: String
    private let tower: BellTower.Place

    init(name: String, tower: BellTower.Place, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.tower = tower
        self.actorSystem = actorSystem
    }

    /// Sets an alarm at a time in milliseconds since 1970. The change of the state is in the same write.
    @Idempotent distributed func set(_ alarm: String, at time: Int64, everySeconds interval: Int?) throws {
        if rings[alarm] == nil { rings[alarm] = 0 }
        let date = Date(timeIntervalSince1970: Double(time) / 1_000)
        try alarms.set(alarm, at: date, every: interval.map { .seconds($0) }, payload: time)
    }

    @Idempotent distributed func cancel(_ alarm: String) throws -> Bool { try alarms.cancel(alarm) }
    distributed func counts() -> [String: Int] { rings }
    distributed func pending() -> [String] { alarms.pending.map(\.name) }

    /// Does not suspend, so its change is in the same write as the removal of the alarm.
    func alarm(_ alarm: Alarm) throws {
        let time = (alarm.dueTime.timeIntervalSince1970 * 1_000).rounded()
        tower.ring(name, alarm.name, at: Int64(time))
        if alarm.name.hasPrefix("failing"), alarm.attempt == 1 { throw TrebuchetError(.unavailable, "no rope") }
        rings[alarm.name, default: 0] += 1
    }
}

/// Nodes with bells, whose clocks for alarms a test moves.
final class BellTower: Sendable {
    /// The rings of all nodes, in order.
    let journal = Journal()
    /// The lines of the nodes' logs.
    let log = Journal()
    private let early = Mutex<[String]>([])

    /// The rings before their times, by the clock of the node.
    var earlyRings: [String] { early.withLock { $0 } }

    /// The place of a bell: one node.
    final class Place: Sendable {
        private let tower: BellTower
        private let node: String
        private let server = Mutex<Weak?>(nil)

        private struct Weak: Sendable { weak var server: TrebuchetServer? }

        init(_ tower: BellTower, _ node: String) { (self.tower, self.node) = (tower, node) }

        func setServer(_ server: TrebuchetServer) { self.server.withLock { $0 = Weak(server: server) } }

        func ring(_ bell: String, _ alarm: String, at time: Int64) {
            let now = server.withLock { $0?.server }?.alarmClock.now() ?? .max
            if now < time { tower.early.withLock { $0.append("\(bell) \(alarm) at \(node): \(now) < \(time)") } }
            tower.journal.record("\(bell) \(alarm)")
        }
    }

    func node(
        _ name: String, _ engine: MemoryEngine, through engineRoute: (any ClusterEngine)? = nil,
        limits: ServerLimits = ServerLimits(), settings: ClusterMemberSettings = Node.settings,
        clock: ManualEngineClock? = nil, idle: Duration? = nil
    ) throws -> Node {
        let place = Place(self, name)
        let log = log
        return try Node(
            name, engine, through: engineRoute, limits: limits, settings: settings, clock: clock,
            log: ConsoleLog { log.record($0) }
        ) { server in
            place.setServer(server)
            let system = server.actorSystem
            server.expose(Bell.self, as: "bells/*", idle: idle, placement: .cluster) { name in
                Bell(name: name, tower: place, actorSystem: system)
            }
        }
    }
}
