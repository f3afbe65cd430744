/** A background process, as the server lists it. */
export type Process = {
  id: string;
  command: string;
  is_running: boolean;
  user_id: string;
  key_id: string | null;
  started_at: string;
  output_bytes: number;
  exit_code: number | null;
  duration_ms: number | null;
  limit: string | null;
  reason: string | null;
  commit_id: string | null;
};
