internal import Networking
internal import WebSockets
final class WebSocketServer: Sendable { var address: SocketAddress { fatalError() }; func stopAccepting() async {} }
enum WebSocketSessions { static func listen(host: String, port: Int, shards: [ServerShard], limits: ServerLimits) throws -> WebSocketServer { fatalError() } }
enum WebSocketClientLink { static func connect(_ core: ClientCore, host: String, port: Int) async throws {} }
