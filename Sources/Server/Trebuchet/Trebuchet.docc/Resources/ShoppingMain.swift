import Trebuchet

switch CommandLine.arguments.dropFirst().first {
case "serve":
    let server = try await startShoppingServer(port: 8080)
    try await server.run()
case "watch":
    try await watchShopping(port: 8080) { items in
        print(items.map(\.name))
        return true
    }
case let name?:
    try await shop(port: 8080, name: name)
case nil:
    print("usage: shopping serve | watch | NAME")
}
