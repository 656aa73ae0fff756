import Trebuchet
import TrebuchetServices

func startChatServer(port: Int, mailer: any MagicCodeMailer) async throws -> TrebuchetServer {
    let accounts = try await Accounts(mailer: mailer)
    let server = TrebuchetServer(transport: .webSocket(port: port), access: accounts.accessPolicy)
    await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
    RoomHost.expose(on: server)
    try await server.start()
    return server
}
