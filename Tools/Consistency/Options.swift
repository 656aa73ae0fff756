import ToolOptions

/// The options of the command line.
struct Options: Sendable {
    var seeds: ClosedRange<Int> = 1...100
    var clients = 20
    var calls = 60
    var limit = Duration.seconds(180)
    /// Clients in Node, with Web/dist/trebuchet.js, instead of those in Swift.
    var web = false
    /// Clients of the services instead of players of games.
    var services = false
    var rounds = 30
    /// Clients of a bank instead of players of games.
    var bank = false
    /// Nodes that share a Redis server instead of one server with a file; 0 for that.
    var nodes = 0
    /// Whether nodes and Redis run in separate network namespaces with network faults.
    var namespaces = false
    var faults = NetworkPlan.Kind.allCases
    var isVerbose = false
    /// An executable `trebuchet` that is judged instead of nodes with games.
    var server: String?
    /// The maximum number of accounts of a bank.
    var accounts = 2_000

    static let help = """
        usage: Consistency [--web] [--nodes N] [--seeds 1-100] [--seed N] [--clients N] [--calls N] [--limit SECONDS]
               Consistency --services [--nodes N] [--seeds 1-100] [--seed N] [--rounds N] [--limit SECONDS]
               Consistency --bank [--seeds 1-100] [--seed N] [--accounts N] [--limit SECONDS]

          --seeds FROM-TO   the seeds to run, one after the other (1-100)
          --seed N          run only this seed
          --clients N       clients of each seed, in four processes; a multiple of four (20)
          --calls N         calls of each client (60)
          --web             clients in Node, with trebuchet.js
          --nodes N         nodes that share a Redis server, instead of one server without Redis (0: no nodes)
          --namespaces      nodes, Redis and sentinels each in a network namespace; the network fails too (only by scripts/stress consistency)
          --faults KINDS    the faults, with --namespaces (\(NetworkPlan.Kind.all))
          --server PATH     nodes are PATH serve, with counters instead of games; with --namespaces
          --verbose         print each of these faults
          --services        clients of the services: two in Swift, one in Python, one in Node
          --rounds N        rounds of each of them: three writes, and an event for each room (30)
          --bank            transfers between the accounts of a bank whose server is killed
          --accounts N      the maximum number of accounts; each seed draws its number (2000)
          --limit SECONDS   the time of a seed after which it fails with a report of what it waits for (180)

        exits with 0 without a finding, 1 after a finding, 2 after wrong usage
        """

    init(_ arguments: [String]) throws(WrongUse) {
        var rest = ToolOptions(arguments)
        while let option = rest.next() {
            switch option {
            case "--services": services = true
            case "--bank": bank = true
            case "--accounts": accounts = try rest.number(2...100_000)
            case "--web": web = true
            case "--nodes": nodes = try rest.number(0...9)
            case "--namespaces": namespaces = true
            case "--server": server = try rest.value()
            case "--verbose": isVerbose = true
            case "--faults":
                let value = try rest.value()
                faults = try value.split(separator: ",").map { word throws(WrongUse) in
                    guard let kind = NetworkPlan.Kind(rawValue: String(word)) else {
                        throw WrongUse("--faults has no '\(word)'; there are \(NetworkPlan.Kind.all)")
                    }
                    return kind
                }
                guard !faults.isEmpty else { throw WrongUse("--faults needs one at least") }
            case "--seeds":
                let value = try rest.value()
                let ends = value.split(separator: "-").compactMap { Int($0) }
                guard ends.count == 2, ends[0] >= 0, ends[0] <= ends[1] else {
                    throw WrongUse("--seeds must be two numbers as 1-100, not '\(value)'")
                }
                seeds = ends[0]...ends[1]
            case "--seed":
                let seed = try rest.number(0...1_000_000_000)
                seeds = seed...seed
            case "--clients":
                clients = try rest.number(4...400)
                guard clients % Judge.clientPools == 0 else {
                    throw WrongUse("--clients must be a multiple of four")
                }
            case "--calls": calls = try rest.number(1...10_000)
            case "--rounds": rounds = try rest.number(1...10_000)
            case "--limit": limit = .seconds(try rest.number(1...100_000))
            default: throw rest.unknown
            }
        }
        guard !namespaces || nodes > 1 && !web else {
            throw WrongUse("--namespaces needs --nodes, two at least, and no --web")
        }
        guard server == nil || namespaces else { throw WrongUse("--server needs --namespaces") }
    }
}
