
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.blobs (
    ws uuid NOT NULL,
    key bytea NOT NULL,
    size bigint NOT NULL,
    encoding smallint NOT NULL,
    data bytea NOT NULL,
    signature bytea
);
ALTER TABLE ONLY public.blobs ALTER COLUMN data SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.blobs ALTER COLUMN signature SET STORAGE EXTERNAL;

CREATE TABLE public.calls (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    caller uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_us bigint NOT NULL,
    outcome text NOT NULL,
    commit_id uuid
);

CREATE TABLE public.changes (
    ws uuid NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    file_id uuid NOT NULL
);

CREATE TABLE public.changes_kept (
    kept xid8 NOT NULL,
    next xid8 NOT NULL
);

CREATE TABLE public.chat_messages (
    ws uuid NOT NULL,
    chat_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.commits (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    call_id uuid NOT NULL,
    toolset text NOT NULL,
    tool text NOT NULL,
    author uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    undoes uuid,
    changes text NOT NULL
);

CREATE TABLE public.files (
    ws uuid NOT NULL,
    id uuid NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    dir text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    display_name text,
    kind smallint NOT NULL,
    is_virtual boolean DEFAULT false NOT NULL,
    head_seq bigint,
    head_version uuid,
    head_hash bytea,
    head_blob bytea,
    head_form smallint,
    size bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    mode integer
)
WITH (fillfactor='70');

CREATE TABLE public.members (
    ws uuid NOT NULL,
    user_id uuid NOT NULL,
    role smallint NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.schema_version (
    version integer NOT NULL
);

CREATE TABLE public.secrets (
    name text NOT NULL,
    value text NOT NULL
);

CREATE TABLE public.sessions (
    token_hash bytea NOT NULL,
    family uuid NOT NULL,
    user_id uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    spent_at timestamp with time zone
);

CREATE TABLE public.sign_in_attempts (
    key text NOT NULL,
    window_start timestamp with time zone NOT NULL,
    count integer NOT NULL
);

CREATE TABLE public.users (
    id uuid NOT NULL,
    email text NOT NULL,
    password_hash text NOT NULL,
    full_name text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.versions (
    ws uuid NOT NULL,
    file_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    form smallint NOT NULL,
    blob bytea NOT NULL,
    size bigint NOT NULL,
    author uuid NOT NULL,
    commit_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.workspaces (
    id uuid NOT NULL,
    name text NOT NULL,
    owner_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    kind smallint DEFAULT 0 NOT NULL,
    root text,
    settings text DEFAULT '{}'::text NOT NULL
);

INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x3a79bf37b571938d1f2907afb6a643f48088b83769dde8bc58f5ee866a5c3636', 10, 0, '\x76657273696f6e20310a', '\x0208012000480300');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\xb03d44cd60d71de68a4aca7808c6f768802f6d6c414430ff8ccea10c1aa57b4c', 10, 0, '\x76657273696f6e20320a', '\x0208012020010300');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x77774d2f39299ce8479e4bd4f37ad338057ba8480abd7aedcf17186129702f74', 10, 0, '\x76657273696f6e20330a', '\x0208016002000300');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\xba9a81afc5b69ebbd1da3652e438ca850d456d3a71c25ccd2c6d3d693fd73f2e', 26, 0, '\x6e6565646c6520696e20746865206f6c642072656c656173650a', '\x03872072028002010010200081041080');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x177b95f881d79b744b4100bc49ce30d2fd33f2a855dd4c2f31fd7317788911ef', 31, 0, '\x6e6565646c6520696e207468652070726576696f75732072656c656173650a', '\x03872452428200012010220080041002');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x482f1abf9047e82cd2b7eca8d6be07e37d39e02125488f6caa54c5141213cd40', 13, 0, '\x696e207468652074726173680a', '\x048a0110c20c0000');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x2c85ab0700b597297552509665d1f5a95111d16c5416fdc88d5bb85fcf4d0017', 6, 0, '\x6d6f7665640a', '\x0000000000810011');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', 256, 0, '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff', NULL);
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x593cc73afde0d4c9e6b8dddd2b752b94a73e59941ababfb4c2bfdfc70758c80c', 5400, 1, '\x28b52ffd6018141d0100d861206c6f6e67206c696e65206f6620616e206f6c642066696c650a0100eb93f7730c', '\x410840018882028022008280018105a2');
INSERT INTO public.blobs VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '\x2079cba41e1f721bf53fdf75cedb62082286bf6df8166e0fce847d8efcabd8ef', 10, 0, '\x73686f7274206e6f770a', '\x0000020220183000');
INSERT INTO public.blobs VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '\xb5de96f3069c74110d826517dfbee37938f7b9d99837ab7d15734c958c60f9f6', 9, 0, '\x666f6c64657220310a', '\x0104001000880080');
INSERT INTO public.blobs VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '\x426a1382f6c8654a3876018b496a64d45842ef5a4a38f4619184bca4dd0a7599', 9, 0, '\x666f6c64657220320a', '\x0104001020800080');
INSERT INTO public.blobs VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '\x9aaa22c61914e2a3c4d308b1e0007f99afe64c93bd0974e8263691ef58dc8eb7', 14, 0, '\x72656d6f766564206c617465720a', '\x0884120030010419');

INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e36e-71c5-a54e-5a16cb16532d', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.190036+00', 8152, 'ok', '01a1ebbc-e3b4-70bc-9818-6ace3774f9ac');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3db-71be-b1f9-5179b9448076', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.291409+00', 108, 'ok', '01a1ebbc-e3db-71be-b1f9-517a54381b0d');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3e9-7579-bb25-aec24e54c036', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.306024+00', 93, 'ok', '01a1ebbc-e3ea-710d-8ceb-71750b7c1b4a');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3f9-731a-9f95-322d63b6f585', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.322124+00', 108, 'ok', '01a1ebbc-e3fa-7661-bf0a-02ab7a006b9d');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3fe-7044-a905-e8dcbe85d228', 'workspace', 'edit', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.326251+00', 8287, 'ok', '01a1ebbc-e406-77b9-b640-b685c9351f8f');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e41e-76b3-b4af-9ba6b5ed81be', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.358215+00', 110, 'ok', '01a1ebbc-e41e-76b3-b4af-9ba7a0f26f4e');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e432-71a0-a46e-4cb738f41b36', 'workspace', 'rm', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.378867+00', 492, 'ok', '01a1ebbc-e434-767e-89d2-b5903be74453');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e444-7151-b755-93691b8bb5ad', 'workspace', 'mkdir', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.396909+00', 9759, 'ok', '01a1ebbc-e463-70d5-b146-0c0048a988b2');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e471-76e6-82ae-981fd40a920e', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.441949+00', 100, 'ok', '01a1ebbc-e472-77f5-893a-25414fd9c0f7');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e475-77f6-976c-6bdf1efa7f35', 'workspace', 'mv', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.445816+00', 7898, 'ok', '01a1ebbc-e4a1-76dd-b1ba-e982dbd2d60c');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4b6-7476-8cad-afb7db418356', 'system', 'write_file', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.511082+00', 7542, 'ok', '01a1ebbc-e4c1-7488-ac7a-f66c21c3bbb3');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4c3-74a9-aac8-f2de2c26beda', 'system', 'write_file', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.523634+00', 6161, 'ok', '01a1ebbc-e4cb-7318-8ecf-74f826c98259');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4ce-7368-81ec-3461a7888077', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.534251+00', 63, 'ok', '01a1ebbc-e4ce-7368-81ec-3462ddd9e873');
INSERT INTO public.calls VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4d8-71af-a493-fc9e1887db54', 'api', 'chat', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.544485+00', 223, 'ok', '01a1ebbc-e4d9-70b3-8ef3-8909bf4248a3');
INSERT INTO public.calls VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e4fe-70e9-a94f-c458c6a80790', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.594169+00', 3517, 'ok', '01a1ebbc-e516-766c-9cdf-9ebd3b6c9a79');
INSERT INTO public.calls VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e54a-7131-bdb5-e06783765563', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.658845+00', 269, 'ok', '01a1ebbc-e54c-7227-bba5-10d56b7b0581');
INSERT INTO public.calls VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e59d-759e-8389-96510c55ff96', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.742052+00', 320, 'ok', '01a1ebbc-e5aa-72f0-b013-d60c992d8f7b');
INSERT INTO public.calls VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e5df-7375-9782-5f7bcf20b80e', 'workspace', 'rm', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.807484+00', 308, 'ok', '01a1ebbc-e5e1-7310-85be-b807e3e07c24');

INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '740', '01a1ebbc-e3b4-70bc-9818-6acb91a31f86');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '740', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '741', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '742', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '743', '01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '744', '01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '745', '01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '746', '01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '747', '01a1ebbc-e463-70d5-b146-0bffc53424dd');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '748', '01a1ebbc-e472-77f5-893a-2543f306735a');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '749', '01a1ebbc-e472-77f5-893a-2543f306735a');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '750', '01a1ebbc-e4c1-7488-ac7a-f66b1a5fc0ce');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '751', '01a1ebbc-e4cb-7318-8ecf-74f730e31aa4');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '752', '01a1ebbc-e4cb-7318-8ecf-74f730e31aa4');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '753', '01a1ebbc-e4d9-70b3-8ef3-89081a42eeec');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '754', '01a1ebbc-e4d9-70b3-8ef3-890ad7b2b4a8');
INSERT INTO public.changes VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '755', '01a1ebbc-e4d9-70b3-8ef3-890ad7b2b4a8');
INSERT INTO public.changes VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '759', '01a1ebbc-e516-766c-9cdf-9ebc08a2a868');
INSERT INTO public.changes VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '761', '01a1ebbc-e516-766c-9cdf-9ebc08a2a868');
INSERT INTO public.changes VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '763', '01a1ebbc-e5aa-72f0-b013-d60b5e966c45');
INSERT INTO public.changes VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '765', '01a1ebbc-e5aa-72f0-b013-d60b5e966c45');

INSERT INTO public.changes_kept VALUES ('725', '727');

INSERT INTO public.chat_messages VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4d9-70b3-8ef3-890ad7b2b4a8', 1, '01a1ebbc-e4e2-7647-81fc-1055e3ffe594', 'user', 'hello from before', '2026-11-17 22:59:47.554765+00');

INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6ace3774f9ac', '01a1ebbc-e36e-71c5-a54e-5a16cb16532d', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.198188+00', NULL, '[{"op":"create","path":"/notes","file_id":"01a1ebbc-e3b4-70bc-9818-6acb91a31f86"},{"op":"create","path":"/notes/a.txt","file_id":"01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5","after":1,"version_id":"01a1ebbc-e3b4-70bc-9818-6acc258c21b8"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3db-71be-b1f9-517a54381b0d', '01a1ebbc-e3db-71be-b1f9-5179b9448076', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.291517+00', NULL, '[{"op":"update","path":"/notes/a.txt","file_id":"01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5","before":1,"after":2,"version_id":"01a1ebbc-e3db-71be-b1f9-517b8af96e39"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3ea-710d-8ceb-71750b7c1b4a', '01a1ebbc-e3e9-7579-bb25-aec24e54c036', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.306117+00', NULL, '[{"op":"update","path":"/notes/a.txt","file_id":"01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5","before":2,"after":3,"version_id":"01a1ebbc-e3ea-710d-8ceb-71763217a1ad"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3fa-7661-bf0a-02ab7a006b9d', '01a1ebbc-e3f9-731a-9f95-322d63b6f585', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.322232+00', NULL, '[{"op":"create","path":"/notes/b.txt","file_id":"01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b","after":1,"version_id":"01a1ebbc-e3fa-7661-bf0a-02ac00246aea"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e406-77b9-b640-b685c9351f8f', '01a1ebbc-e3fe-7044-a905-e8dcbe85d228', 'workspace', 'edit', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.334538+00', NULL, '[{"op":"update","path":"/notes/b.txt","file_id":"01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b","before":1,"after":2,"version_id":"01a1ebbc-e406-77b9-b640-b6861e5fe57d"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e41e-76b3-b4af-9ba7a0f26f4e', '01a1ebbc-e41e-76b3-b4af-9ba6b5ed81be', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.358325+00', NULL, '[{"op":"create","path":"/gone.txt","file_id":"01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8","after":1,"version_id":"01a1ebbc-e41e-76b3-b4af-9ba8bc6b8067"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e434-767e-89d2-b5903be74453', '01a1ebbc-e432-71a0-a46e-4cb738f41b36', 'workspace', 'rm', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.379359+00', NULL, '[{"op":"remove","path":"/gone.txt","file_id":"01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8","after":1,"version_id":"01a1ebbc-e41e-76b3-b4af-9ba8bc6b8067"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e463-70d5-b146-0c0048a988b2', '01a1ebbc-e444-7151-b755-93691b8bb5ad', 'workspace', 'mkdir', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.406668+00', NULL, '[{"op":"create","path":"/empty","file_id":"01a1ebbc-e463-70d5-b146-0bffc53424dd"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e472-77f5-893a-25414fd9c0f7', '01a1ebbc-e471-76e6-82ae-981fd40a920e', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.442049+00', NULL, '[{"op":"create","path":"/moved.txt","file_id":"01a1ebbc-e472-77f5-893a-2543f306735a","after":1,"version_id":"01a1ebbc-e472-77f5-893a-25426b6c27b6"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4a1-76dd-b1ba-e982dbd2d60c', '01a1ebbc-e475-77f6-976c-6bdf1efa7f35', 'workspace', 'mv', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.453714+00', NULL, '[{"op":"move","path":"/notes/moved.txt","from":"/moved.txt","file_id":"01a1ebbc-e472-77f5-893a-2543f306735a","after":1,"version_id":"01a1ebbc-e472-77f5-893a-25426b6c27b6"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4c1-7488-ac7a-f66c21c3bbb3', '01a1ebbc-e4b6-7476-8cad-afb7db418356', 'system', 'write_file', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.518624+00', NULL, '[{"op":"create","path":"/bytes.bin","file_id":"01a1ebbc-e4c1-7488-ac7a-f66b1a5fc0ce","after":1,"version_id":"01a1ebbc-e4c1-7488-ac7a-f66af690453e"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4cb-7318-8ecf-74f826c98259', '01a1ebbc-e4c3-74a9-aac8-f2de2c26beda', 'system', 'write_file', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.529795+00', NULL, '[{"op":"create","path":"/long.txt","file_id":"01a1ebbc-e4cb-7318-8ecf-74f730e31aa4","after":1,"version_id":"01a1ebbc-e4cb-7318-8ecf-74f6fe6efbe5"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4ce-7368-81ec-3462ddd9e873', '01a1ebbc-e4ce-7368-81ec-3461a7888077', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.534314+00', NULL, '[{"op":"update","path":"/long.txt","file_id":"01a1ebbc-e4cb-7318-8ecf-74f730e31aa4","before":1,"after":2,"version_id":"01a1ebbc-e4ce-7368-81ec-346383ab5b43"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4d9-70b3-8ef3-8909bf4248a3', '01a1ebbc-e4d8-71af-a493-fc9e1887db54', 'api', 'chat', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.544708+00', NULL, '[{"op":"create","path":"/chats","file_id":"01a1ebbc-e4d9-70b3-8ef3-89081a42eeec"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e516-766c-9cdf-9ebd3b6c9a79', '01a1ebbc-e4fe-70e9-a94f-c458c6a80790', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.597686+00', NULL, '[{"op":"create","path":"/a.txt","file_id":"01a1ebbc-e516-766c-9cdf-9ebc08a2a868","after":1,"version_id":"01a1ebbc-e516-766c-9cdf-9ebb81127591"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e54c-7227-bba5-10d56b7b0581', '01a1ebbc-e54a-7131-bdb5-e06783765563', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.659114+00', NULL, '[{"op":"update","path":"/a.txt","file_id":"01a1ebbc-e516-766c-9cdf-9ebc08a2a868","before":1,"after":2,"version_id":"01a1ebbc-e54c-7227-bba5-10d424cd61da"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e5aa-72f0-b013-d60c992d8f7b', '01a1ebbc-e59d-759e-8389-96510c55ff96', 'workspace', 'write', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.742372+00', NULL, '[{"op":"create","path":"/b.txt","file_id":"01a1ebbc-e5aa-72f0-b013-d60b5e966c45","after":1,"version_id":"01a1ebbc-e5aa-72f0-b013-d60a24118868"}]');
INSERT INTO public.commits VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e5e1-7310-85be-b807e3e07c24', '01a1ebbc-e5df-7375-9782-5f7bcf20b80e', 'workspace', 'rm', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.807792+00', NULL, '[{"op":"remove","path":"/b.txt","file_id":"01a1ebbc-e5aa-72f0-b013-d60b5e966c45","after":1,"version_id":"01a1ebbc-e5aa-72f0-b013-d60a24118868"}]');

INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e352-77a1-8559-4f038281a3ff', '/', '', '', NULL, 0, false, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.154486+00', '2026-11-17 22:59:47.154486+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6acb91a31f86', '/notes', '/', 'notes', NULL, 0, false, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.198188+00', '2026-11-17 22:59:47.198188+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5', '/notes/a.txt', '/notes', 'a.txt', NULL, 1, false, 3, '01a1ebbc-e3ea-710d-8ceb-71763217a1ad', '\x77774d2f39299ce8479e4bd4f37ad338057ba8480abd7aedcf17186129702f74', '\x77774d2f39299ce8479e4bd4f37ad338057ba8480abd7aedcf17186129702f74', 0, 10, '2026-11-17 22:59:47.198188+00', '2026-11-17 22:59:47.306117+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b', '/notes/b.txt', '/notes', 'b.txt', NULL, 1, false, 2, '01a1ebbc-e406-77b9-b640-b6861e5fe57d', '\x177b95f881d79b744b4100bc49ce30d2fd33f2a855dd4c2f31fd7317788911ef', '\x177b95f881d79b744b4100bc49ce30d2fd33f2a855dd4c2f31fd7317788911ef', 0, 31, '2026-11-17 22:59:47.322232+00', '2026-11-17 22:59:47.334538+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8', '/gone.txt', '/', 'gone.txt', NULL, 1, false, 1, '01a1ebbc-e41e-76b3-b4af-9ba8bc6b8067', '\x482f1abf9047e82cd2b7eca8d6be07e37d39e02125488f6caa54c5141213cd40', '\x482f1abf9047e82cd2b7eca8d6be07e37d39e02125488f6caa54c5141213cd40', 0, 13, '2026-11-17 22:59:47.358325+00', '2026-11-17 22:59:47.358325+00', '2026-11-17 22:59:47.379359+00', NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e463-70d5-b146-0bffc53424dd', '/empty', '/', 'empty', NULL, 0, false, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.406668+00', '2026-11-17 22:59:47.406668+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e472-77f5-893a-2543f306735a', '/notes/moved.txt', '/notes', 'moved.txt', NULL, 1, false, 1, '01a1ebbc-e472-77f5-893a-25426b6c27b6', '\x2c85ab0700b597297552509665d1f5a95111d16c5416fdc88d5bb85fcf4d0017', '\x2c85ab0700b597297552509665d1f5a95111d16c5416fdc88d5bb85fcf4d0017', 0, 6, '2026-11-17 22:59:47.442049+00', '2026-11-17 22:59:47.453714+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4c1-7488-ac7a-f66b1a5fc0ce', '/bytes.bin', '/', 'bytes.bin', NULL, 7, false, 1, '01a1ebbc-e4c1-7488-ac7a-f66af690453e', '\x40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', '\x40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', 2, 256, '2026-11-17 22:59:47.518624+00', '2026-11-17 22:59:47.518624+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4cb-7318-8ecf-74f730e31aa4', '/long.txt', '/', 'long.txt', NULL, 1, false, 2, '01a1ebbc-e4ce-7368-81ec-346383ab5b43', '\x2079cba41e1f721bf53fdf75cedb62082286bf6df8166e0fce847d8efcabd8ef', '\x2079cba41e1f721bf53fdf75cedb62082286bf6df8166e0fce847d8efcabd8ef', 0, 10, '2026-11-17 22:59:47.529795+00', '2026-11-17 22:59:47.534314+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4d9-70b3-8ef3-89081a42eeec', '/chats', '/', 'chats', NULL, 0, false, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.544708+00', '2026-11-17 22:59:47.544708+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4d9-70b3-8ef3-890ad7b2b4a8', '/chats/Talk.chat', '/chats', 'Talk.chat', 'Talk', 4, true, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.545931+00', '2026-11-17 22:59:47.554765+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e4f4-76f0-bd39-5ae8718e0cca', '/', '', '', NULL, 0, false, NULL, NULL, NULL, NULL, NULL, 0, '2026-11-17 22:59:47.572966+00', '2026-11-17 22:59:47.572966+00', NULL, NULL);
INSERT INTO public.files VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e516-766c-9cdf-9ebc08a2a868', '/a.txt', '/', 'a.txt', NULL, 1, false, 2, '01a1ebbc-e54c-7227-bba5-10d424cd61da', '\x426a1382f6c8654a3876018b496a64d45842ef5a4a38f4619184bca4dd0a7599', '\x426a1382f6c8654a3876018b496a64d45842ef5a4a38f4619184bca4dd0a7599', 0, 9, '2026-11-17 22:59:47.597686+00', '2026-11-17 22:59:47.659114+00', NULL, 33188);
INSERT INTO public.files VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e5aa-72f0-b013-d60b5e966c45', '/b.txt', '/', 'b.txt', NULL, 1, false, 1, '01a1ebbc-e5aa-72f0-b013-d60a24118868', '\x9aaa22c61914e2a3c4d308b1e0007f99afe64c93bd0974e8263691ef58dc8eb7', '\x9aaa22c61914e2a3c4d308b1e0007f99afe64c93bd0974e8263691ef58dc8eb7', 0, 14, '2026-11-17 22:59:47.742372+00', '2026-11-17 22:59:47.742372+00', '2026-11-17 22:59:47.807792+00', 33188);

INSERT INTO public.members VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', 3, '2026-11-17 22:59:47.154486+00');
INSERT INTO public.members VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e232-76cc-8c5a-9143eec0343f', 1, '2026-11-17 22:59:47.157367+00');
INSERT INTO public.members VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', 3, '2026-11-17 22:59:47.572966+00');

INSERT INTO public.schema_version VALUES (4);

INSERT INTO public.secrets VALUES ('jwt', 'the secret of a fixture, which signs nothing but tests');

INSERT INTO public.sessions VALUES ('\xb71f0616fada8696e1de672687baf6989c5f1a4a40f437c14725b9b287951421', '01a1ebbc-e171-73d3-8a25-dd51a33bc02c', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-12-17 22:59:46+00', NULL);
INSERT INTO public.sessions VALUES ('\xd8aa73b3dc9cf460728d11522f0ab476448b67372821c7d74ddac07680f507a2', '01a1ebbc-e334-765f-b221-86f4541af1a2', '01a1ebbc-e232-76cc-8c5a-9143eec0343f', '2026-12-17 22:59:47+00', NULL);

INSERT INTO public.sign_in_attempts VALUES ('account:ada@example.com', '2026-11-17 22:59:46.453871+00', 0);
INSERT INTO public.sign_in_attempts VALUES ('account:ada@example.com:127.0.0.1', '2026-11-17 22:59:46.453871+00', 0);
INSERT INTO public.sign_in_attempts VALUES ('address:127.0.0.1', '2026-11-17 22:59:46.445886+00', 0);
INSERT INTO public.sign_in_attempts VALUES ('account:grace@example.com', '2026-11-17 22:59:46.8829+00', 0);
INSERT INTO public.sign_in_attempts VALUES ('account:grace@example.com:127.0.0.1', '2026-11-17 22:59:46.8829+00', 0);

INSERT INTO public.users VALUES ('01a1ebbc-e07e-7702-8cba-5a408f6fc507', 'ada@example.com', '$argon2id$v=19$m=19456,t=2,p=1$VdzXBWb0/aYwATu33TFmlQ$Enz2wJ7VltqmKMghHZjUvxCHyzGK4yHPFpjJ2rhKy64', 'Ada', '2026-11-17 22:59:46.430052+00', '2026-11-17 22:59:46.430052+00');
INSERT INTO public.users VALUES ('01a1ebbc-e232-76cc-8c5a-9143eec0343f', 'grace@example.com', '$argon2id$v=19$m=19456,t=2,p=1$Rivk9JFUEpLWkSEyKq4wEg$ZZ5jeIhA9JUKR2lld/yno77jRKVW9Ng4SLk5957usP0', 'Grace', '2026-11-17 22:59:46.866938+00', '2026-11-17 22:59:46.866938+00');

INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5', 1, '01a1ebbc-e3b4-70bc-9818-6acc258c21b8', '\x3a79bf37b571938d1f2907afb6a643f48088b83769dde8bc58f5ee866a5c3636', 0, '\x3a79bf37b571938d1f2907afb6a643f48088b83769dde8bc58f5ee866a5c3636', 10, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e3b4-70bc-9818-6ace3774f9ac', '2026-11-17 22:59:47.198188+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5', 2, '01a1ebbc-e3db-71be-b1f9-517b8af96e39', '\xb03d44cd60d71de68a4aca7808c6f768802f6d6c414430ff8ccea10c1aa57b4c', 0, '\xb03d44cd60d71de68a4aca7808c6f768802f6d6c414430ff8ccea10c1aa57b4c', 10, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e3db-71be-b1f9-517a54381b0d', '2026-11-17 22:59:47.291517+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3b4-70bc-9818-6acdfe2b7aa5', 3, '01a1ebbc-e3ea-710d-8ceb-71763217a1ad', '\x77774d2f39299ce8479e4bd4f37ad338057ba8480abd7aedcf17186129702f74', 0, '\x77774d2f39299ce8479e4bd4f37ad338057ba8480abd7aedcf17186129702f74', 10, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e3ea-710d-8ceb-71750b7c1b4a', '2026-11-17 22:59:47.306117+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b', 1, '01a1ebbc-e3fa-7661-bf0a-02ac00246aea', '\xba9a81afc5b69ebbd1da3652e438ca850d456d3a71c25ccd2c6d3d693fd73f2e', 0, '\xba9a81afc5b69ebbd1da3652e438ca850d456d3a71c25ccd2c6d3d693fd73f2e', 26, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e3fa-7661-bf0a-02ab7a006b9d', '2026-11-17 22:59:47.322232+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e3fa-7661-bf0a-02ad03a3c95b', 2, '01a1ebbc-e406-77b9-b640-b6861e5fe57d', '\x177b95f881d79b744b4100bc49ce30d2fd33f2a855dd4c2f31fd7317788911ef', 0, '\x177b95f881d79b744b4100bc49ce30d2fd33f2a855dd4c2f31fd7317788911ef', 31, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e406-77b9-b640-b685c9351f8f', '2026-11-17 22:59:47.334538+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e41e-76b3-b4af-9ba92bc83ba8', 1, '01a1ebbc-e41e-76b3-b4af-9ba8bc6b8067', '\x482f1abf9047e82cd2b7eca8d6be07e37d39e02125488f6caa54c5141213cd40', 0, '\x482f1abf9047e82cd2b7eca8d6be07e37d39e02125488f6caa54c5141213cd40', 13, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e41e-76b3-b4af-9ba7a0f26f4e', '2026-11-17 22:59:47.358325+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e472-77f5-893a-2543f306735a', 1, '01a1ebbc-e472-77f5-893a-25426b6c27b6', '\x2c85ab0700b597297552509665d1f5a95111d16c5416fdc88d5bb85fcf4d0017', 0, '\x2c85ab0700b597297552509665d1f5a95111d16c5416fdc88d5bb85fcf4d0017', 6, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e472-77f5-893a-25414fd9c0f7', '2026-11-17 22:59:47.442049+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4c1-7488-ac7a-f66b1a5fc0ce', 1, '01a1ebbc-e4c1-7488-ac7a-f66af690453e', '\x40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', 2, '\x40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880', 256, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e4c1-7488-ac7a-f66c21c3bbb3', '2026-11-17 22:59:47.518624+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4cb-7318-8ecf-74f730e31aa4', 1, '01a1ebbc-e4cb-7318-8ecf-74f6fe6efbe5', '\x593cc73afde0d4c9e6b8dddd2b752b94a73e59941ababfb4c2bfdfc70758c80c', 0, '\x593cc73afde0d4c9e6b8dddd2b752b94a73e59941ababfb4c2bfdfc70758c80c', 5400, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e4cb-7318-8ecf-74f826c98259', '2026-11-17 22:59:47.529795+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', '01a1ebbc-e4cb-7318-8ecf-74f730e31aa4', 2, '01a1ebbc-e4ce-7368-81ec-346383ab5b43', '\x2079cba41e1f721bf53fdf75cedb62082286bf6df8166e0fce847d8efcabd8ef', 0, '\x2079cba41e1f721bf53fdf75cedb62082286bf6df8166e0fce847d8efcabd8ef', 10, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e4ce-7368-81ec-3462ddd9e873', '2026-11-17 22:59:47.534314+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e516-766c-9cdf-9ebc08a2a868', 1, '01a1ebbc-e516-766c-9cdf-9ebb81127591', '\xb5de96f3069c74110d826517dfbee37938f7b9d99837ab7d15734c958c60f9f6', 0, '\xb5de96f3069c74110d826517dfbee37938f7b9d99837ab7d15734c958c60f9f6', 9, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e516-766c-9cdf-9ebd3b6c9a79', '2026-11-17 22:59:47.597686+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e516-766c-9cdf-9ebc08a2a868', 2, '01a1ebbc-e54c-7227-bba5-10d424cd61da', '\x426a1382f6c8654a3876018b496a64d45842ef5a4a38f4619184bca4dd0a7599', 0, '\x426a1382f6c8654a3876018b496a64d45842ef5a4a38f4619184bca4dd0a7599', 9, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e54c-7227-bba5-10d56b7b0581', '2026-11-17 22:59:47.659114+00');
INSERT INTO public.versions VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', '01a1ebbc-e5aa-72f0-b013-d60b5e966c45', 1, '01a1ebbc-e5aa-72f0-b013-d60a24118868', '\x9aaa22c61914e2a3c4d308b1e0007f99afe64c93bd0974e8263691ef58dc8eb7', 0, '\x9aaa22c61914e2a3c4d308b1e0007f99afe64c93bd0974e8263691ef58dc8eb7', 14, '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '01a1ebbc-e5aa-72f0-b013-d60c992d8f7b', '2026-11-17 22:59:47.742372+00');

INSERT INTO public.workspaces VALUES ('01a1ebbc-e352-77a1-8559-4f02b75b7cd4', 'Archive', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.154486+00', '2026-11-17 22:59:47.563627+00', NULL, 0, NULL, '{"run":{"timeout_ms":5000}}');
INSERT INTO public.workspaces VALUES ('01a1ebbc-e4f4-76f0-bd39-5ae7100f25b8', 'Folder', '01a1ebbc-e07e-7702-8cba-5a408f6fc507', '2026-11-17 22:59:47.572966+00', '2026-11-17 22:59:47.572966+00', NULL, 1, '/srv/toolrest-upgrade/folder', '{}');

ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT blobs_pkey PRIMARY KEY (ws, key);

ALTER TABLE ONLY public.calls
    ADD CONSTRAINT calls_pkey PRIMARY KEY (ws, id);

ALTER TABLE ONLY public.chat_messages
    ADD CONSTRAINT chat_messages_pkey PRIMARY KEY (ws, chat_id, seq);

ALTER TABLE ONLY public.commits
    ADD CONSTRAINT commits_pkey PRIMARY KEY (ws, id);

ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (ws, id);

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (ws, user_id);

ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_email_key UNIQUE (email);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.versions
    ADD CONSTRAINT versions_pkey PRIMARY KEY (ws, file_id, seq);

ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (id);

CREATE INDEX changes_by_transaction ON public.changes USING btree (ws, xid);

CREATE INDEX files_by_folder ON public.files USING btree (ws, dir, name) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX files_by_path ON public.files USING btree (ws, path) WHERE (deleted_at IS NULL);

CREATE INDEX files_in_trash ON public.files USING btree (ws, deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX members_by_user ON public.members USING btree (user_id, ws);

CREATE INDEX sessions_by_family ON public.sessions USING btree (family);

CREATE INDEX virtual_files ON public.files USING btree (ws, path) WHERE (is_virtual AND (deleted_at IS NULL));

