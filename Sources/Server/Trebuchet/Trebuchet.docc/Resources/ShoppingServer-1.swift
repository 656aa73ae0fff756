import Trebuchet

func startShoppingServer(port: Int) async throws -> TrebuchetServer {
    let server = TrebuchetServer(transport: .webSocket(port: port))
    let list = ShoppingList(actorSystem: server.actorSystem)
    await server.expose(list, as: "shopping")
    return server
}
