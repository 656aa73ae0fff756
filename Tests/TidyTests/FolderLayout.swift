/// The floors of the folders inside each module, the lowest first: a folder uses only those before it.
///
/// "." is the module's root. A new folder gets its floor here.
enum FolderLayout {
    static let floors: [String: [[String]]] = [
        "Deltas": [
            ["Changes"], ["Storage"], ["Keyed"],
        ],
        "Networking": [
            ["Sockets"], ["TLS"], ["."],
        ],
        "QStream": [
            ["Core"], ["Sources"], ["Operators"], ["Time"], ["Utilities"], ["Bridges"],
        ],
        "SharedState": [
            ["Keys"], ["Files"], ["Operations"], ["References"], ["."],
        ],
        "StateMachines": [
            ["Reports"], ["CasePaths"], ["Clocks"], ["Dependencies"], ["Dependencies/Standard"], ["Effects"],
            ["Reducers"], ["Machines"], ["Running"], ["."], ["Testing"],
        ],
        // What a server is made of, then what is made for one connection, then the server.
        "Trebuchet": [
            ["Limits"], ["Metrics"], ["Logs"], ["Traces"], ["Access"], ["Pages"], ["Transports"], ["ClusterState"],
            ["Server/Shares"],
            ["Server/ClientActors"],
            ["Server/DirectLinks"], ["Server/Nodes"],
            ["Server/Actors"], ["Server/Answers"], ["Server/Calls"], ["Server/Connections"], ["Server/Links"],
            ["Server"], ["Inspector"],
        ],
        // What can go wrong and what things are called, who calls, what an actor shows and what is kept of it; then what a call is
        // made of, the actor system, how calls reach its actors, and who reads what those show.
        "TrebuchetActors": [
            ["Errors"], ["Telling"], ["Names"], ["Caller"],
            ["Streaming/Updates"], ["Streaming"], ["Streaming/Encoded"], ["Streaming/Producers"], ["Persistence"],
            ["Invocations"], ["ActorSystem"], ["Dispatch"], ["Calls"], ["Streaming/Readers"], ["."],
        ],
        "TrebuchetCLI": [
            ["Torment"], ["Demo"], ["Commands"], ["Admin"], ["Inspect"], ["."],
        ],
        "TrebuchetClient": [
            ["Hosting"], ["."], ["Observed"],
        ],
        "TrebuchetCluster": [
            ["."], ["Memory"], ["Placement"],
        ],
        // What goes over the wire, where to, one connection, which of several; then what they are for.
        "TrebuchetRedis": [
            ["Wire"], ["Address"], ["Client"], ["Routes"], ["Engine"],
        ],
        // What each service is at the server, then at a client, then the backend that has them all, then the values that show them.
        "TrebuchetServices": [
            ["JSON"], ["Hosting"], ["Schema"],
            ["Auth"], ["Auth/Mail"], ["Auth/OpenID"], ["Auth/Accounts"],
            ["Collections"], ["Collections/Queries"], ["Collections/Commands"], ["Collections/Server/Queries"],
            ["Collections/Server/Stored"], ["Collections/Server"],
            ["Rooms/Events"], ["Rooms"], ["Rooms/Server"],
            ["Rules"], ["Admin"],
            ["Auth/Client"], ["Collections/Client"], ["Rooms/Client"],
            ["Backend"],
            ["Values/Auth", "Values/Collections", "Values/Rooms"], ["Values/Topics"],
        ],
        // JSON and what all messages have, and how values are coded in it, then parts of a state, then whole messages.
        "TrebuchetWire": [
            ["."], ["Coding"], ["Patch"], ["Filter"], ["Envelopes"], ["Legacy"],
        ],
        "WebSockets": [
            ["Frames"], ["HTTP"], ["Compression"], ["Plain"], ["Proxies"], ["."],
        ],
    ]
}
