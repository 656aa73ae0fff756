/// The breaking changes between two schemas.
package struct SchemaComparison: Sendable {
    /// The party that a change breaks.
    package enum Audience: String, CaseIterable, Sendable {
        /// Apps with the old schema, at servers with the new one.
        case oldClients = "old-clients"
        /// Apps with the new schema, at servers with the old one: during a deployment that begins with the apps.
        case newClients = "new-clients"
        /// States and events that servers with the old schema have stored.
        case storedData = "stored-data"
    }

    /// A breaking change.
    package struct Change: Sendable {
        package let audience: Audience
        /// The changed declaration, such as `TodoItem.title` or `TodoList.addTodo(title:)`.
        package let subject: String
        package let text: String
        /// The first use of a changed type, such as `state TodoList.state`; nil for a member of an actor.
        package let use: String?
    }

    /// The changes: by audience, then by the order of the declarations.
    package private(set) var changes: [Change] = []

    /// Compares two texts of schema files.
    package init(old: String, new: String) throws(SchemaError) {
        let (old, new) = (try SchemaDocument(old), try SchemaDocument(new))
        compare(
            old, .init("old clients", old), new, .init("new servers", new), for: .oldClients)
        compare(
            new, .init("new clients", new), old, .init("old servers", old), for: .newClients)
        compareStored(old, new)
    }

    private mutating func report(_ audience: Audience, _ subject: String, _ text: String, use: String? = nil) {
        let isKnown = changes.contains { $0.audience == audience && $0.subject == subject && $0.text == text }
        if !isKnown { changes.append(Change(audience: audience, subject: subject, text: text, use: use)) }
    }

    // MARK: Clients

    private mutating func compare(
        _ client: SchemaDocument, _ clientSide: TypeComparison.Side, _ server: SchemaDocument,
        _ serverSide: TypeComparison.Side, for audience: Audience
    ) {
        var sent = TypeComparison(writer: clientSide, reader: serverSide)
        var received = TypeComparison(writer: serverSide, reader: clientSide)
        let actors = Dictionary(server.actors.map { ($0.swiftName, $0) }) { first, _ in first }
        for actor in client.actors {
            guard let served = actors[actor.swiftName] else {
                report(audience, actor.swiftName, "used by \(clientSide.name), absent at \(serverSide.name)")
                continue
            }
            let methods = Dictionary(served.methods.map { ($0.target, $0) }) { first, _ in first }
            for method in actor.methods {
                let subject = "\(actor.swiftName).\(method.target)"
                guard let own = methods[method.target] else {
                    report(audience, subject, "called by \(clientSide.name), absent at \(serverSide.name)")
                    continue
                }
                compare(method, own, subject, clientSide, serverSide, &sent, &received, for: audience)
            }
            for (kind, observed, offered) in [
                ("state", actor.states, served.states), ("events", actor.events, served.events),
            ] {
                for stream in observed {
                    let subject = "\(actor.swiftName).\(stream.name)"
                    guard let own = offered.first(where: { $0.target == stream.target }) else {
                        report(audience, subject, "observed by \(clientSide.name), absent at \(serverSide.name)")
                        continue
                    }
                    for finding in received.compare(own.type, stream.type, at: subject) {
                        report(audience, finding.subject, finding.text, use: "\(kind) \(subject)")
                    }
                }
            }
        }
    }

    private mutating func compare(
        _ called: SchemaDocument.Method, _ served: SchemaDocument.Method, _ subject: String,
        _ client: TypeComparison.Side, _ server: TypeComparison.Side, _ sent: inout TypeComparison,
        _ received: inout TypeComparison, for audience: Audience
    ) {
        for (parameter, own) in zip(called.parameters, served.parameters) {
            for finding in sent.compare(parameter.type, own.type, at: subject) {
                report(
                    audience, finding.subject, finding.text, use: "parameter '\(parameter.name)' of \(subject)")
            }
        }
        if let expected = called.result {
            if let result = served.result {
                for finding in received.compare(result, expected, at: subject) {
                    report(audience, finding.subject, finding.text, use: "result of \(subject)")
                }
            } else {
                report(audience, subject, "'\(expected)' is the result for \(client.name), none of \(server.name)")
            }
        }
        if let expected = called.error, let error = served.error {
            // Errors are identified by the last component of their type's name.
            if expected.name.split(separator: ".").last != error.name.split(separator: ".").last {
                let text = "'\(expected.name)' is the error for \(client.name), '\(error.name)' of \(server.name)"
                report(audience, subject, text)
            } else {
                for finding in received.compare(error.type, expected.type, at: subject) {
                    report(audience, finding.subject, finding.text, use: "error of \(subject)")
                }
            }
        }
        if called.idempotent == true, served.idempotent != true {
            report(audience, subject, "repeated by \(client.name), not idempotent at \(server.name)")
        }
    }

    // MARK: Stored data

    private mutating func compareStored(_ old: SchemaDocument, _ new: SchemaDocument) {
        let writer = TypeComparison.Side("old servers", values: "stored values", old)
        let reader = TypeComparison.Side("new servers", new)
        var states = TypeComparison(writer: writer, reader: reader, dropsUnknownMembers: true)
        var events = TypeComparison(writer: writer, reader: reader)
        let actors = Dictionary(new.actors.map { ($0.swiftName, $0) }) { first, _ in first }
        for actor in old.actors {
            let now = actors[actor.swiftName]
            for state in actor.storedStates {
                let subject = "\(actor.swiftName).\(state.name)"
                guard let own = match(state, now?.storedStates, subject),
                    let (before, version) = versions(state, own, subject), version == before
                else { continue }
                for finding in states.compare(state.type, own.type, at: subject, fills: true) {
                    report(.storedData, finding.subject, finding.text, use: "stored state \(subject)")
                }
            }
            for stream in actor.storedEvents {
                let subject = "\(actor.swiftName).\(stream.name)"
                guard let own = match(stream, now?.storedEvents, subject) else { continue }
                for finding in events.compare(stream.type, own.type, at: subject) {
                    report(.storedData, finding.subject, finding.text, use: "stored events \(subject)")
                }
            }
        }
    }

    private mutating func match(
        _ stored: SchemaDocument.Stream, _ streams: [SchemaDocument.Stream]?, _ subject: String
    ) -> SchemaDocument.Stream? {
        let found = streams?.first { $0.name == stored.name }
        if found == nil { report(.storedData, subject, "stored by old servers, not read by new servers") }
        return found
    }

    /// Returns the versions of the stored form; nil if new servers refuse the stored one. `migrate` converts a lower version, and
    /// its code is not known here.
    private mutating func versions(
        _ stored: SchemaDocument.Stream, _ read: SchemaDocument.Stream, _ subject: String
    ) -> (before: Int, now: Int)? {
        let (before, now) = (stored.storedVersion ?? 1, read.storedVersion ?? 1)
        guard now < before else { return (before, now) }
        report(.storedData, subject, "version \(before) in stored values, refused by new servers with version \(now)")
        return nil
    }
}

/// The output of a comparison.
extension SchemaComparison {
    /// The selection of changes that make a comparison fail.
    package struct Selection: Sendable {
        /// The audiences whose changes count.
        package var audiences: Set<Audience> = [.oldClients, .storedData]
        /// The subjects of intended changes, which do not count.
        package var accepted: Set<String> = []

        package init() {}
    }

    private func counts(_ change: Change, _ selection: Selection) -> Bool {
        selection.audiences.contains(change.audience) && !selection.accepted.contains(change.subject)
    }

    /// Returns the number of changes that make the comparison fail.
    package func failures(_ selection: Selection) -> Int { changes.count { counts($0, selection) } }

    /// Returns a line for each change, and one with the number of failures.
    package func text(_ selection: Selection) -> String {
        let lines = changes.map { change in
            "\(counts(change, selection) ? "breaking" : "note") for \(change.audience.rawValue): \(change.subject): "
                + "\(change.text)\(change.use.map { " (\($0))" } ?? "")\n"
        }
        let count = failures(selection)
        return lines.joined()
            + (count == 0 ? "no breaking changes\n" : "\(count) breaking change\(count == 1 ? "" : "s")\n")
    }

    /// Returns the changes as JSON.
    package func json(_ selection: Selection) -> String {
        let elements = changes.map { change in
            var members: [(String, OrderedJSON)] = [
                ("for", .string(change.audience.rawValue)), ("subject", .string(change.subject)),
                ("change", .string(change.text)),
            ]
            if let use = change.use { members.append(("use", .string(use))) }
            members.append(("breaking", .boolean(counts(change, selection))))
            return OrderedJSON.object(members)
        }
        let report = OrderedJSON.object([
            ("format", .string("trebuchet-schema-comparison")), ("version", .number("1")),
            ("breaking", .number("\(failures(selection))")), ("changes", .array(elements)),
        ])
        return report.text() + "\n"
    }
}
