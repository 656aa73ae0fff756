import Trebuchet

func shop(port: Int, name: String) async throws {
    let client = TrebuchetClient(transport: .webSocket(port: port))
    try await client.connect()
    let list = try client.resolve(ShoppingList.self, id: "shopping")
    try await list.add(name)
    await client.close()
}

func watchShopping(port: Int, show: @Sendable ([Item]) -> Bool) async throws {
    let client = TrebuchetClient(transport: .webSocket(port: port))
    try await client.connect()
    let list = try client.resolve(ShoppingList.self, id: "shopping")
    for await state in await list.observeState() {
        guard show(state.items) else { break }
    }
    await client.close()
}
