import Trebuchet
import TrebuchetCluster
import TrebuchetRedis

/// `Consistency node REDIS NAME PORT`: the games on one of several nodes, in a process that can be killed or stand still.
enum GameNode {
    static func run(redis: String, name: String, port: Int) async throws {
        let engine = try RedisEngine(url: redis)
        var settings = ClusterMemberSettings()
        // So short that a seed sees leases that are over.
        settings.leaseDuration = .seconds(2)
        settings.leaseMargin = .milliseconds(250)
        settings.roundInterval = .milliseconds(100)
        settings.handoversAtOnce = 256
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: port), reactors: 2, limits: GameServer.limits,
            cluster: try ClusterMembership(of: name, at: engine, settings: settings), log: { _ in })
        server.expose(Game.self, as: "games/*", placement: .cluster) { _ in Game(actorSystem: server.actorSystem) }
        try await server.start()
        print("listening")
        try await server.run(shutdownOn: [.terminate], drain: .seconds(5))
        await engine.close()
    }
}
