import Trebuchet
import TrebuchetCluster
import TrebuchetNodes
import TrebuchetRedis
import TrebuchetServices

/// `Consistency node REDIS NAME HOST PORT LINKS DURABILITY`: the games, rooms and collections on one of several nodes, in a process that can be
/// killed or suspended.
struct GameNode {
    private let redis: String
    private let name: String
    private let host: String
    private let port: Int
    /// Where the other nodes reach it directly; nil for a node that they do not.
    private let links: Int?
    private let durability: GameDurability

    init?(_ words: [String]) {
        guard words.count == 6, let port = Int(words[3]), let durability = GameDurability(rawValue: words[5]) else {
            return nil
        }
        (redis, name, host, self.port, links) = (words[0], words[1], words[2], port, Int(words[4]))
        self.durability = durability
    }

    func run() async throws {
        let engine = try RedisEngine(
            url: redis, durability: durability == .engine ? .engine : .replicated(1, within: .milliseconds(500)))
        var settings = ClusterMemberSettings()
        // So short that a seed sees leases that are over.
        settings.leaseDuration = .seconds(2)
        settings.leaseMargin = .milliseconds(250)
        settings.roundInterval = .milliseconds(100)
        settings.concurrentHandovers = 256
        var access = AccessPolicy.open
        access.identifiesCallers = true
        let server = TrebuchetServer(
            transport: .webSocket(host: host, port: port), reactors: 2, limits: GameServer.limits, access: access,
            cluster: try ClusterMembership(
                of: name, at: engine, settings: settings, address: links.map { NodeAddress(host: host, port: $0) }),
            log: ConsoleLog { print("log: \($0)") })
        server.expose(Game.self, as: "games/*", placement: .cluster) { _ in Game(actorSystem: server.actorSystem) }
        var rooms = RoomLimits()
        // So short that stays of lost connections end before the seed does.
        rooms.reconnectTime = .seconds(4)
        RoomHost.expose(on: server, limits: rooms, placement: .cluster)
        CollectionHost.expose(on: server, rules: EntryRules(), placement: .cluster)
        // It may be started before its engine.
        while true {
            do {
                try await server.start()
                break
            } catch let error as ClusterEngineError where error.code == .unavailable {
                print("no engine yet: \(error)")
                try await Task.sleep(for: .milliseconds(100))
            }
        }
        try await server.serveJudge(drain: .seconds(5))
        await engine.close()
    }
}

/// Every caller may write every document, and all read the same.
struct EntryRules: CollectionRules {
    func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool { true }

    func hasUniformReaders(in collection: String) -> Bool { true }
}
