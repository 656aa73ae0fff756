/// The floors of the folders inside each module, the lowest first: a folder uses only those before it.
///
/// "." is the module's root. A new folder gets its floor here.
enum FolderPlan {
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
            ["Reports"], ["CasePaths"], ["Dependencies"], ["Effects"], ["Reducers"], ["Machines"], ["Running"],
            ["."], ["Testing"],
        ],
        // What a server is made of, then what is made for one connection, then the server.
        "Trebuchet": [
            ["Limits"], ["Logs"], ["Access"], ["Pages"], ["Transports"], ["Server/Shares"], ["Server/ClientActors"],
            ["Server/Actors"], ["Server/Answers"], ["Server/Calls"], ["Server/Connections"], ["Server/Links"],
            ["Server"],
        ],
        // What an actor is called and how it is reached, who calls, what it shows, how it is called, what is kept of it.
        "TrebuchetActors": [
            ["ActorSystem"], ["Caller"],
            ["Streaming/Reading"], ["Streaming"], ["Streaming/Ordered"], ["Streaming/Filters"],
            ["Dispatch"], ["Calls"], ["Persistence"], ["."],
        ],
        "TrebuchetCLI": [
            ["Torment"], ["Demo"], ["Commands"], ["Admin"], ["."],
        ],
        "TrebuchetClient": [
            ["Hosting"], ["."], ["Observed"],
        ],
        // What each service is at the server, then at a client, then the backend that has them all, then the values that show them.
        "TrebuchetServices": [
            ["JSON"], ["Hosting"], ["Schema"],
            ["Auth"], ["Auth/Mail"], ["Auth/OpenID"], ["Auth/Accounts"],
            ["Collections"], ["Collections/Queries"], ["Collections/Commands"], ["Collections/Server/Queries"],
            ["Collections/Server"],
            ["Rooms/Events"], ["Rooms"], ["Rooms/Server"],
            ["Rules"], ["Admin"],
            ["Auth/Client"], ["Collections/Client"], ["Rooms/Client"],
            ["Backend"],
            ["Values/Auth", "Values/Collections", "Values/Rooms"], ["Values/Topics"],
        ],
        // JSON and what all messages have, then parts of a state, then whole messages.
        "TrebuchetWire": [
            ["."], ["Patch"], ["Filter"], ["Envelopes"], ["Legacy"],
        ],
        "WebSockets": [
            ["Frames"], ["HTTP"], ["Compression"], ["Plain"], ["Proxies"], ["."],
        ],
    ]

    /// Uses that go up all the same. The list only becomes shorter: a test fails for one that is mended and still stands here.
    static let exceptions = uses(
        "Actors, dispatch, streams and persistence of TrebuchetActors know each other.",
        [
            "TrebuchetActors/ActorSystem/ActorHost.swift": ["ActorRecord"],
            "TrebuchetActors/ActorSystem/RemoteServer.swift": [
                "EncodedStream", "KeptState", "StreamReading", "StreamTarget",
            ],
            "TrebuchetActors/ActorSystem/TrebuchetActor.swift": ["CallerConnection", "DispatchTable"],
            "TrebuchetActors/ActorSystem/TrebuchetActorSystem.swift": [
                "ActorLife", "ActorRecord", "PersistedStates", "PlainActorRecord", "Retirements", "SystemShard",
                "TypedActorRecord",
            ],
            "TrebuchetActors/Dispatch/ActorRecord.swift": ["PersistedStates"],
            "TrebuchetActors/Dispatch/TypedActorRecord.swift": ["PersistedStates"],
            "TrebuchetActors/Streaming/Reading/LocalObservation.swift": [
                "Broadcaster", "FilteredSource", "SystemShard",
            ],
            "TrebuchetActors/Streaming/Reading/LocalStream.swift": ["DispatchStream", "StreamHub", "SystemShard"],
            "TrebuchetActors/Streaming/Reading/LocalSubscriber.swift": [
                "Broadcaster", "StreamHub", "StreamSubscriber", "StreamSubscription", "SystemShard",
            ],
            "TrebuchetActors/Streaming/Reading/StateObservation.swift": ["StreamDelivery"],
            "TrebuchetActors/Streaming/RecentUpdates.swift": ["Backlog"],
            "TrebuchetActors/Streaming/StateCell.swift": ["StreamDelivery"],
            "TrebuchetActors/Streaming/StateSource.swift": [
                "FilterList", "FilterTerms", "FilteredSource", "PersistedStates", "StreamDelivery",
            ],
            "TrebuchetActors/Streaming/StreamHub.swift": ["FilterTerms", "FilteredSource"],
            "TrebuchetActors/Streaming/SystemShard.swift": ["StateWriter"],
        ])

    private static func uses(_ why: String, _ names: [String: [String]]) -> Set<FolderRules.Exception> {
        Set(
            names.flatMap { path, names in
                names.map { FolderRules.Exception(path: "Sources/\(path)", name: $0, why: why) }
            })
    }
}
