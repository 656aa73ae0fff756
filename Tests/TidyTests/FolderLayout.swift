/// The layers of the folders inside each module, the lowest first: a folder uses only those before it.
///
/// "." is the module's root. A new folder gets its layer here.
enum FolderLayout {
    static let layers: [String: [[String]]] = [
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
        // The parts of a server, then those of one connection, then the server.
        "Trebuchet": [
            ["Limits"], ["Metrics"], ["Logging"], ["Access"], ["StaticFiles"], ["Transports"],
            ["Cluster/Logs"],
            ["Server/Quotas"],
            ["Server/ClientActors"],
            ["Cluster/NodeLinks"], ["Cluster/Routing"],
            ["Server/Actors"], ["Server/Idempotency"], ["Server/Calls"], ["Server/Connections"], ["Server/Links"],
            ["Server"], ["Inspector"],
        ],
        // Errors and names, callers, an actor's streams and their persistence; then the parts of a call, the actor system, the dispatch of
        // calls, and the subscribers.
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
        // The protocol, addresses, one connection, several connections; then the engine.
        "TrebuchetRedis": [
            ["Wire"], ["Address"], ["Client"], ["Routing"], ["Engine"],
        ],
        // The servers of the services, then their clients, then the backend with all of them, then the shared values.
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
        // JSON and the common parts of messages, the coding of values, then parts of a state, then whole messages.
        "TrebuchetWire": [
            ["."], ["Coding"], ["Patch"], ["Filter"], ["Envelopes"], ["Legacy"],
        ],
        "WebSockets": [
            ["Frames"], ["HTTP"], ["Compression"], ["PlainHTTP"], ["Proxies"], ["."],
        ],
    ]
}
