/// The layers of the folders inside each module, the lowest first: a folder uses only those before it.
///
/// "." is the module's root. A new folder gets its layer here.
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
            ["IssueReporting"], ["CasePaths"], ["Clocks"], ["Dependencies"], ["Dependencies/Standard"], ["Effects"],
            ["Reducers"], ["Machines"], ["Hosts"], ["."], ["Testing"],
        ],
        // What a server is made of, then what is made for one connection, then the server.
        "Trebuchet": [
            ["Limits"], ["Metrics"], ["Logging"], ["Tracing"], ["Access"], ["StaticFiles"], ["Transports"],
            ["Cluster/Logs"],
            ["Server/Quotas"],
            ["Server/ClientActors"],
            ["Cluster/NodeLinks"], ["Cluster/Routing"],
            ["Server/Actors"], ["Server/Idempotency"], ["Server/Calls"], ["Server/Connections"], ["Server/Links"],
            ["Server"], ["Inspector"],
        ],
        // What can go wrong and what things are called, who calls, what an actor shows and what is kept of it; then what a call is
        // made of, the actor system, how calls reach its actors, and who reads what those show.
        "TrebuchetActors": [
            ["Errors"], ["Observability"], ["Names"], ["Caller"],
            ["Streaming/Updates"], ["Streaming"], ["Streaming/Encoding"], ["Streaming/Producers"], ["Persistence"],
            ["Invocations"], ["ActorSystem"], ["Dispatch"], ["Calls"], ["Streaming/Readers"], ["."],
        ],
        "TrebuchetCLI": [
            ["AdversarialTestActors"], ["Demo"], ["Commands"], ["Admin"], ["Inspect"], ["."],
        ],
        "TrebuchetClient": [
            ["ClientActors"], ["."], ["Observation"],
        ],
        "TrebuchetCluster": [
            ["."], ["Memory"], ["Placement"],
        ],
        // What goes over the wire, where to, one connection, which of several; then what they are for.
        "TrebuchetRedis": [
            ["Wire"], ["Address"], ["Client"], ["Routing"], ["Engine"],
        ],
        // What each service is at the server, then at a client, then the backend that has them all, then the values that show them.
        "TrebuchetServices": [
            ["JSON"], ["Connections"], ["Schema"],
            ["Auth"], ["Auth/Mail"], ["Auth/OpenID"], ["Auth/Accounts"],
            ["Collections"], ["Collections/Queries"], ["Collections/Commands"], ["Collections/Server/Queries"],
            ["Collections/Server/Persistence"], ["Collections/Server"],
            ["Rooms/Events"], ["Rooms"], ["Rooms/Server"],
            ["Rules"], ["Admin"],
            ["Auth/Client"], ["Collections/Client"], ["Rooms/Client"],
            ["Backend"],
            ["SharedValues/Auth", "SharedValues/Collections", "SharedValues/Rooms"], ["SharedValues/Topics"],
        ],
        // JSON and what all messages have, and how values are coded in it, then parts of a state, then whole messages.
        "TrebuchetWire": [
            ["."], ["Coding"], ["Patch"], ["Filter"], ["Envelopes"], ["Legacy"],
        ],
        "WebSockets": [
            ["Frames"], ["HTTP"], ["Compression"], ["PlainHTTP"], ["Proxies"], ["."],
        ],
    ]
}
