import Benchmarks
import Trebuchet
import TrebuchetStore

/// `Consistency bank FILE PORT`: the bank of `trebuchet serve --bench --data`, in a process that can be killed.
enum BankServer {
    static func run(file: String, port: Int) async throws {
        var options = SQLiteStore.Options()
        // The seed ends processes, not the machine.
        options.durability = .processEnd
        let store = try SQLiteStore(path: file, options: options)
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port), reactors: 1, store: store)
        await server.expose(Bank(actorSystem: server.actorSystem), as: "bank")
        try await server.serveJudge(drain: .seconds(1))
        await store.close()
    }
}
