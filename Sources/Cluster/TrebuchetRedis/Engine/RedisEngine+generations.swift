public import TrebuchetCluster

/// Generations, which distinguish an emptied server from its earlier state.
extension RedisEngine {
    /// Returns the generation of the server's data; nil if none has begun.
    public func generation() async throws(ClusterEngineError) -> String? {
        let key = keys.generation
        return try await performRequest { () async throws(RedisError) in
            try await route.send(RedisCommand("HGET", [.bytes(key), "name"]), key: key)
        }.text
    }

    /// Begins a generation if there is none. All slots belong to it when this returns, so that a slot without it has
    /// been lost.
    public func createGeneration() async throws(ClusterEngineError) -> String {
        while true {
            let words =
                try await run(EngineScripts.beginGeneration, [keys.generation], [.text(ClusterTable.makeIncarnation())])
                .elements ?? []
            guard words.count == 2, let name = words[0].text, let isWhole = words[1].number else {
                throw Self.damaged("the generation")
            }
            if isWhole == 1 { return name }
            try await join(name)
            let isDone = try await run(EngineScripts.completeGeneration, [keys.generation], [.text(name)]).number == 1
            // Otherwise the server was emptied meanwhile.
            if isDone { return name }
        }
    }

    private func join(_ generation: String) async throws(ClusterEngineError) {
        let failure = await withTaskGroup(of: ClusterEngineError?.self) { group -> ClusterEngineError? in
            for slot in ClusterSlot.all {
                group.addTask {
                    do throws(ClusterEngineError) {
                        _ = try await self.run(
                            EngineScripts.joinGeneration, [self.keys.owner(of: slot)], [.text(generation)])
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            var failure: ClusterEngineError?
            for await outcome in group { failure = failure ?? outcome }
            return failure
        }
        if let failure { throw failure }
    }
}
