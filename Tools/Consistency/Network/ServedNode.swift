/// A node that is `trebuchet serve` of any build (`--server`): its counters, rooms and collections are judged.
struct ServedNode {
    /// Every caller may write every document, as with `EntryRules`.
    static let rules = """
        {
          "collections": {
            "*": { "read": "anyone", "create": "anyone", "update": "anyone", "delete": "anyone" }
          },
          "rooms": { "*": { "join": "anyone", "publish": "anyone" } }
        }
        """

    let executable: String
    let rulesFile: String

    /// - Parameter links: the port at which the other nodes reach it directly; nil for a node that they do not.
    func arguments(engine: String, name: String, host: String, port: Int, links: Int?) -> [String] {
        [
            "serve", "--cluster", engine, "--node", name, "--host", host, "--port", "\(port)", "--reactors", "2",
            "--examples",
            "--services", "rooms,collections", "--rules", rulesFile, "--drain-timeout", "5",
        ] + (links.map { ["--node-address", "\(host):\($0)"] } ?? [])
    }
}
