internal import Bytes
internal import Platform
internal import Trebuchet

/// Sign-in: each method ends in a new session of an account.
extension Accounts {
    func signInAsGuest(on connection: CallerConnection) async throws(AuthError) -> SessionGrant {
        try await loggingRefusals("to sign in as a guest", connection) { () throws(AuthError) in
            let isGuest = connection.principal?.roles.contains("guest") == true
            try await consumeRate(isGuest ? .attempt : .newGuest, connection)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                if let present = try await account(of: connection, in: transaction), present.account.isGuest {
                    return try await beginSession(of: present.id, present.account, on: connection, in: transaction)
                }
                return try await beginSession(
                    of: try await newID(of: Account()), Account(), on: connection, in: transaction)
            }
        }
    }

    // MARK: By a code

    func sendMagicCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        return try await loggingRefusals("to send a code to \(address.text)", connection) { () throws(AuthError) in
            try await sendCode(to: address, .signIn, for: connection)
        }
    }

    func verifyMagicCode(
        email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        let address = try MailAddress(email)
        return try await loggingRefusals("to sign in as \(address.text)", connection) { () throws(AuthError) in
            try await useCode(code, for: address, .signIn, on: connection)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                if let owner = try await transaction.owner(ofAddress: address.text),
                    let account = try await transaction.account(owner)
                {
                    return try await beginSession(of: owner, account, on: connection, in: transaction)
                }
                return try await becomeUser(on: connection, in: transaction) { $0.email = address.text }
            }
        }
    }

    /// The purpose of a code; a code is valid for its purpose only.
    enum CodePurpose {
        case signIn
        /// The code makes the address that of an account.
        case address(account: String)

        fileprivate func name(_ address: MailAddress) -> String {
            switch self {
            case .signIn: address.text
            case .address(let account): "\(address.text) \(account)"
            }
        }
    }

    /// Sends a code, within the rates of the caller.
    func sendCode(
        to address: MailAddress, _ purpose: CodePurpose, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let host = connection.host
        let name = purpose.name(address)
        try mails.check(host, isCounted: host != nil)
        // Before a rate is taken: a user who waits for room must be able to request a code then.
        try codes.checkRoom(for: name, from: host, at: uptime())
        try await consumeRate(.code(for: address.mailbox), connection)
        try mails.check(host, isCounted: host != nil)
        let mail = try await waitForTurn(toMail: address.mailbox, from: host)
        defer { endMail(mail) }
        let code = Self.newCode()
        let digest = digest(code, name)
        try await addCode(digest, for: name, from: host)
        do {
            try await mailer.send(code, to: address.text)
        } catch {
            await remove(digest, for: name, from: host)
            log.mailFailed("a magic code was not sent: \(error)")
            throw .mailNotSent
        }
        return SendMagicCodeResponse(validSeconds: Int(limits.codeLifetime.wholeMilliseconds / 1000))
    }

    // MARK: Turns of mails

    /// The number of mails that wait for their turn.
    var waitingMailCount: Int { mails.waitingCount }

    /// Returns the number of a mail when it may be handed over; throws when others are preferred.
    private func waitForTurn(toMail address: String, from host: CallerHost?) async throws(AuthError) -> UInt64 {
        let (number, refused) = mails.add(address, from: host)
        if let refused { mailWaiters.removeValue(forKey: refused)?.resume(returning: false) }
        guard refused != number else { throw .limitReached("waitingMails") }
        if mails.next() == number { return number }
        let isNext = await withTaskCancellationHandler {
            await withCheckedContinuation { mailWaiters[number] = $0 }
        } onCancel: {
            Task { await self.cancelMail(number) }
        }
        guard isNext else { throw .limitReached("waitingMails") }
        return number
    }

    private func cancelMail(_ number: UInt64) {
        guard let waiter = mailWaiters.removeValue(forKey: number) else { return }
        mails.remove(number)
        waiter.resume(returning: false)
    }

    private func endMail(_ number: UInt64) {
        mails.remove(number)
        while let next = mails.next() { mailWaiters.removeValue(forKey: next)?.resume(returning: true) }
    }

    /// Uses a code up; throws when it is wrong.
    func useCode(
        _ code: String, for address: MailAddress, _ purpose: CodePurpose, on connection: CallerConnection
    ) async throws(AuthError) {
        let name = purpose.name(address)
        try await consumeRate(.attempt, connection)
        let typed = TypedCode.normalized(code)
        guard TypedCode.isCode(typed) else {
            // A slip of the keyboard is no guess, so it costs no try.
            throw .wrongCode(triesLeft: try await triesLeft(for: name, from: connection.host))
        }
        try await consumeCode(digest(typed, name), for: name, from: connection.host)
        await usedCode(for: address.mailbox, connection)
    }

    /// Returns six uniformly random digits.
    private static func newCode() -> String {
        var generator = SystemRandomNumberGenerator()
        let digits = String(Int.random(in: 0..<1_000_000, using: &generator))
        return String(repeating: "0", count: TypedCode.digits - digits.count) + digits
    }

    /// Includes the purpose, so that equal codes have different digests.
    private func digest(_ code: String, _ name: String) -> [UInt8] {
        Digest.hmacSHA256(Array("\(name)\n\(code)".utf8), key: codeKey)
    }

    // MARK: New sessions

    /// Turns a guest into a user with the same id, or creates a new account for any other caller.
    ///
    /// - Parameter change: makes the account that of a user.
    func becomeUser(
        on connection: CallerConnection, in transaction: AccountTransaction, _ change: (inout Account) -> Void
    ) async throws(AuthError) -> SessionGrant {
        if let present = try await account(of: connection, in: transaction), present.account.isGuest {
            var account = present.account
            change(&account)
            return try await beginSession(of: present.id, account, on: connection, in: transaction)
        }
        var account = Account()
        change(&account)
        return try await beginSession(of: try await newID(of: account), account, on: connection, in: transaction)
    }

    /// Returns the id for a new account; throws at the limits.
    private func newID(of account: Account) async throws(AuthError) -> String {
        try await countAccounts()
        var more = AccountCount()
        more.replace(nil, with: account)
        if let limit = limit(exceededBy: more) { throw .limitReached(limit) }
        while true {
            let id = Base64URL.encode(.random(count: 16))
            // An id must not begin with a dash, because commands would parse it as an option.
            if !id.hasPrefix("-") { return id }
        }
    }

    /// Returns the limit that more accounts would exceed; nil when there is room.
    func limit(exceededBy more: AccountCount) -> String? {
        if more.all > 0, accountCount.all + more.all > limits.accounts { return "accounts" }
        return more.guests > 0 && accountCount.guests + more.guests > limits.guests ? "guests" : nil
    }

    /// Writes the account with a new session, which replaces the session of the connection.
    func beginSession(
        of id: String, _ account: Account, on connection: CallerConnection, in transaction: AccountTransaction
    ) async throws(AuthError) -> SessionGrant {
        let token = RefreshToken.random()
        var account = account
        var changes = AccountRecords.Changes()
        var ended: [(session: String, end: SessionEndReason)] = []
        let old = try await transaction.account(id)
        var label: String?
        if let before = connection.session, let family = try await transaction.family(before) {
            label = family.label
            ended.append((before, .replaced))
            if family.account == id {
                account.sessions.removeAll { $0 == before }
            } else {
                try await remove([before], from: family.account, &changes, in: transaction)
            }
        }
        let family = RefreshTokenFamily(
            account: id, token: token.digest, label: label, at: now(),
            lifetime: limits.sessionLifetime.wholeMilliseconds)
        account.sessions.append(token.session)
        while account.sessions.count > limits.sessionsPerAccount {
            ended.append((account.sessions.removeFirst(), .tooMany))
        }
        for (session, end) in ended { changes.endSession(session, because: end) }
        try changes.set(family, session: token.session)
        try changes.set(account, id: id)
        if let email = account.email {
            _ = try await transaction.owner(ofAddress: email)
            changes.set(owner: id, ofAddress: email)
        }
        for identity in account.identities ?? [] {
            _ = try await transaction.owner(ofIdentity: identity)
            changes.set(owner: id, ofIdentity: identity)
        }
        changes.count.replace(old, with: account)
        // A guest that becomes a user changes for its other sessions too.
        let others = account.sessions.dropLast()
        if let old, old.user(id: id) != account.user(id: id), !others.isEmpty {
            changes.change(account.user(id: id), sessions: Array(others))
        }
        try await write(changes, in: transaction)
        let grant = try grant(account.user(id: id), token, on: connection, in: transaction)
        for (session, end) in ended {
            await connections.endSessions([session], because: end, at: now())
            if end != .replaced { log.ended(session, of: id, end.description) }
        }
        return grant
    }
}

/// Sign-in with the ID token of a provider.
extension Accounts {
    private static let maximumIdentities = 16

    func signIn(
        idToken: String, provider name: String, nonce: String?, on connection: CallerConnection
    ) async throws(AuthError) -> SessionGrant {
        try await loggingRefusals("to sign in with a token of '\(name.prefix(bytes: 64))'", connection) {
            () throws(AuthError) in
            try await consumeRate(.attempt, connection)
            guard let keys = providers[ByteText(name)] else { throw .unknownProvider }
            let identity = try await keys.identity(of: idToken, nonce: nonce)
            try await makeRoom()
            return try await inTurn(of: connection) { transaction throws(AuthError) in
                try await signIn(identity, linking: keys.provider.linksAccountsByEmail, on: connection, in: transaction)
            }
        }
    }

    /// - Parameter linking: true when the identity's address may be used: it finds the account that has it, or becomes the
    ///   address of the new account.
    private func signIn(
        _ identity: Identity, linking: Bool, on connection: CallerConnection, in transaction: AccountTransaction
    ) async throws(AuthError) -> SessionGrant {
        if let owner = try await transaction.owner(ofIdentity: identity.name),
            let account = try await transaction.account(owner)
        {
            return try await beginSession(of: owner, account, on: connection, in: transaction)
        }
        // The address of a provider that is not trusted for addresses is ignored; otherwise its later owner would reach the
        // same account.
        let address = linking ? identity.address : nil
        if let address, let owner = try await transaction.owner(ofAddress: address.text),
            var account = try await transaction.account(owner)
        {
            var identities = account.identities ?? []
            guard identities.count < Self.maximumIdentities else { throw .limitReached("identities") }
            identities.append(identity.name)
            account.identities = identities
            return try await beginSession(of: owner, account, on: connection, in: transaction)
        }
        return try await becomeUser(on: connection, in: transaction) { account in
            account.identities = [identity.name]
            account.email = address?.text
        }
    }
}

/// Operations on a whole account.
extension Accounts {
    // MARK: Change of address

    func sendAddressCode(
        to email: String, for connection: CallerConnection
    ) async throws(AuthError) -> SendMagicCodeResponse {
        let address = try MailAddress(email)
        return try await loggingRefusals("to send a code to \(address.text)", connection) { () throws(AuthError) in
            let present = try await present(on: connection)
            // A new address gives permanent access to an account, so a session alone, which may be stolen, is not enough.
            guard isFresh(present) else { throw .notFresh }
            return try await sendCode(to: address, .address(account: present.id), for: connection)
        }
    }

    func changeAddress(
        to email: String, code: String, on connection: CallerConnection
    ) async throws(AuthError) -> User {
        let address = try MailAddress(email)
        return try await loggingRefusals("the address \(address.text)", connection) { () throws(AuthError) in
            let caller = try await present(on: connection)
            try await useCode(code, for: address, .address(account: caller.id), on: connection)
            let (user, before) = try await inTurn(of: connection) { transaction throws(AuthError) in
                let present = try await present(on: connection, in: transaction)
                guard present.id == caller.id else { throw .notSignedIn }
                if let owner = try await transaction.owner(ofAddress: address.text), owner != present.id {
                    throw .addressTaken
                }
                var account = present.account
                let before = account.email
                account.email = address.text
                var changes = AccountRecords.Changes()
                if let before {
                    _ = try await transaction.owner(ofAddress: before)
                    changes.set(owner: nil, ofAddress: before)
                }
                changes.set(owner: present.id, ofAddress: address.text)
                try changes.set(account, id: present.id)
                let user = account.user(id: present.id)
                changes.change(user, sessions: account.sessions)
                changes.count.replace(present.account, with: account)
                try await write(changes, in: transaction)
                return (user, before == address.text ? nil : before)
            }
            if let before { await sendNotice(before, .addressChanged(to: address.text)) }
            return user
        }
    }

    /// Sends a notice by mail. The operation stays done when that fails.
    private func sendNotice(_ address: String, _ notice: AccountNotice) async {
        do {
            try await mailer.send(notice, to: address)
        } catch {
            log.mailFailed("a notice was not sent: \(error)")
        }
    }

    /// Returns whether the user has signed in recently. Guests always pass, because they cannot sign in again.
    private func isFresh(_ present: SignedInCaller) -> Bool {
        // A sign-in by a clock that was ahead is not recent for as long.
        let age = now() - (present.family.created ?? 0)
        return present.account.isGuest || age >= -1_000 && age < limits.recentSignInTime.wholeMilliseconds
    }

    // MARK: Deletion

    /// - Parameter code: a sign-in code that was sent to the account's address; nil after a recent sign-in.
    func deleteAccount(code: String?, on connection: CallerConnection) async throws(AuthError) {
        try await loggingRefusals("to delete an account", connection) { () throws(AuthError) in
            try await consumeRate(.renewal, connection)
            let caller = try await present(on: connection)
            if let code {
                guard let email = caller.account.email else { throw .notFresh }
                try await useCode(code, for: try MailAddress(email), .signIn, on: connection)
            } else {
                guard isFresh(caller) else { throw .notFresh }
            }
            do {
                // Not in the transaction: the hook may be slow, and other sign-ins must not wait for it.
                try await deletionHook?(caller.account.user(id: caller.id))
            } catch {
                log.storeFailed("the data of account \(caller.id) was not deleted: \(error)")
                throw .notDeleted
            }
            let own = connection.session == caller.session ? connection : nil
            if try await delete(caller.id, because: .accountDeleted, leaving: own) {
                log.deleted(caller.id, by: "its user")
            }
        }
    }

    /// Deletes the records of an account and ends its sessions; returns false when there is no such account.
    ///
    /// - Parameter connection: a connection that becomes anonymous.
    func delete(
        _ id: String, because end: SessionEndReason, leaving connection: CallerConnection? = nil
    ) async throws(AuthError) -> Bool {
        try await inTurn(of: connection) { transaction throws(AuthError) in
            guard let account = try await transaction.account(id) else { return false }
            var changes = AccountRecords.Changes()
            for session in account.sessions { changes.endSession(session, because: end) }
            if let email = account.email { changes.set(owner: nil, ofAddress: email) }
            for identity in account.identities ?? [] { changes.set(owner: nil, ofIdentity: identity) }
            try changes.set(nil, id: id)
            changes.count.replace(account, with: nil)
            try await write(changes, in: transaction)
            if let connection { connections.signOut(connection) }
            await connections.endSessions(account.sessions, because: end, at: now())
            return true
        }
    }
}
